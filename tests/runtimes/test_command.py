"""``enable-runtime`` on files: what it writes, keeps, takes back and refuses."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from nri_resmgr.cli.enable_runtime.files import HostFolder, UnusableConfig
from nri_resmgr.runtimes.containerd import MAIN
from nri_resmgr.runtimes.switch import FileChange
from tests.cli.command import ROOT, nri_resmgr
from tests.runtimes.containerd_files import DEBIAN, DROP_IN, IMPORTS, STOCK_1_7

pytestmark = pytest.mark.process

KEPT = f"{MAIN}.before-nri-resmgr"
ON = STOCK_1_7.replace("disable = true", "disable = false")
Done = subprocess.CompletedProcess[str]


class Node:
    """A host root with a containerd that was there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.put("/run/containerd/containerd.sock", "")

    def put(self, path: str, text: str, mode: int = 0o644) -> Path:
        here = self.root / path.lstrip("/")
        here.parent.mkdir(parents=True, exist_ok=True)
        here.write_text(text, newline="")
        here.chmod(mode)
        return here

    def files(self) -> dict[str, str]:
        found = (p for p in (self.root / "etc").rglob("*") if p.is_file())
        return {f"/{p.relative_to(self.root)}": p.read_bytes().decode() for p in found}

    def call(self, *words: str) -> Done:
        return nri_resmgr("enable-runtime", "--host-root", self.root, *words)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_file_is_edited_and_comes_back_as_it_was(node: Node) -> None:
    path = node.put(MAIN, STOCK_1_7, mode=0o640)
    os.utime(path, (1e9, 1e9))
    before = path.stat()
    came = node.call()
    files, mode = node.files(), path.stat().st_mode
    again = node.call()
    went = node.call("--undo")
    after = path.stat()

    assert (came.returncode, came.stderr, came.stdout.splitlines()) == (
        0,
        "",
        [
            "containerd (socket /run/containerd/containerd.sock)",
            f"edited {MAIN}",
            f"the original is {KEPT}",
            "restart it to apply the change: systemctl restart containerd",
        ],
    )
    assert files == {MAIN: ON, KEPT: STOCK_1_7}
    assert stat.S_IMODE(mode) == 0o640
    assert again.stdout.endswith("nothing to do: NRI is enabled\n")
    assert went.stdout.splitlines()[1] == f"restored {MAIN}"
    assert node.files() == {MAIN: STOCK_1_7}
    assert (before.st_ino, before.st_mode, before.st_mtime) == (
        after.st_ino,
        after.st_mode,
        after.st_mtime,
    )


def test_the_first_original_is_kept(node: Node) -> None:
    node.put(MAIN, DEBIAN.replace("\n", "\r\n"))
    node.call()
    path = node.root / MAIN.lstrip("/")
    path.write_bytes(path.read_bytes() + b"# mine\r\n")
    node.call("--request-timeout", "3s")
    undo = node.call("--undo")

    assert node.files()[KEPT] == DEBIAN.replace("\n", "\r\n")
    assert node.files()[MAIN].endswith('timeout = "3s"\r\n# mine\r\n')
    assert (undo.returncode, undo.stdout) == (2, "")
    assert "merge them by hand" in undo.stderr


def test_a_drop_in_comes_and_goes(node: Node) -> None:
    main = f"version = 2\n{IMPORTS}"
    node.put(MAIN, main)
    came = node.call("--registration-timeout", "9s")
    files = node.files()
    shown = json.loads(node.call("--undo", "-o", "json").stdout)

    assert came.stdout.splitlines()[1] == f"created {DROP_IN}"
    assert files.keys() == {MAIN, DROP_IN}
    assert files[MAIN] == main
    assert node.files() == {MAIN: main}
    assert (shown["change"], shown["file"], shown["restarted"]) == (
        "removed",
        DROP_IN,
        False,
    )


def test_a_dry_run_shows_a_diff_and_writes_nothing(node: Node) -> None:
    node.put(MAIN, STOCK_1_7)
    done = node.call("--dry-run")

    assert node.files() == {MAIN: STOCK_1_7}
    assert [line for line in done.stdout.splitlines() if line[:1] in "+-"] == [
        f"--- {MAIN}",
        f"+++ {MAIN}",
        "-    disable = true",
        "+    disable = false",
    ]


def test_crio_gets_a_drop_in_only(node: Node) -> None:
    node.call("--crio", "--request-timeout", "3s")
    files = node.files()
    node.call("--crio", "--undo")

    assert [*files] == ["/etc/crio/crio.conf.d/90-nri-resmgr.conf"]
    assert 'nri_plugin_request_timeout = "3s"' in "".join(files.values())
    assert node.files() == {}


def test_a_plugin_may_be_required(node: Node) -> None:
    node.put(MAIN, STOCK_1_7)
    came = node.call("--require-plugin", "resource-policy")
    again = node.call("--require-plugin", "resource-policy")
    text = node.files()[MAIN]
    node.call("--undo")

    assert 'required_plugins = ["resource-policy"]' in text
    assert [line[:30] for line in came.stdout.splitlines()[-2:]] == [
        "note: required plugins need co",
        "note: without the plugin no co",
    ]
    assert "nothing to do: NRI is enabled, with these settings" in again.stdout
    assert node.files() == {MAIN: STOCK_1_7}


def test_imports_are_followed_and_each_file_read_once(node: Node) -> None:
    node.put(MAIN, "version = 2\nimports = ['a.toml', 'config.toml']\n")
    path = "/etc/containerd/a.toml"
    node.put(path, "imports = ['conf.d/*']\n")
    deep = "[plugins.'io.containerd.nri.v1.nri']\ndisable = true\n"
    node.put("/etc/containerd/conf.d/.x", deep)
    done = node.call()

    assert done.returncode == 2
    assert done.stderr.startswith("nri-resmgr: /etc/containerd/conf.d/.x has [plugins")


def linked(node: Node) -> None:
    real = node.put("/etc/real.toml", STOCK_1_7)
    (node.root / MAIN.lstrip("/")).parent.mkdir()
    (node.root / MAIN.lstrip("/")).symlink_to(real)


def linked_folder(node: Node) -> None:
    node.put("/etc/real/config.toml", STOCK_1_7)
    (node.root / "etc/containerd").symlink_to("real")


def leading_out(node: Node) -> None:
    (node.root / "etc/containerd").mkdir(parents=True)
    (node.root / MAIN.lstrip("/")).symlink_to("/etc/passwd")


def writable(node: Node) -> None:
    node.put(MAIN, STOCK_1_7, mode=0o666)


def in_a_writable_folder(node: Node) -> None:
    node.put(MAIN, STOCK_1_7).parent.chmod(0o777)


def pipe(node: Node) -> None:
    (node.root / "etc/containerd").mkdir(parents=True)
    os.mkfifo(node.root / MAIN.lstrip("/"))


def foreign(node: Node) -> None:
    if os.geteuid():
        pytest.skip("only root can give files away")
    os.chown(node.put(MAIN, STOCK_1_7), 1234, 0)


def import_missing(node: Node) -> None:
    node.put(MAIN, "version = 2\nimports = ['none.toml']\n")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        pytest.param(linked, "is a link to ", id="a link"),
        pytest.param(linked_folder, "is a link to ", id="a link above it"),
        pytest.param(leading_out, "leads out of the host's root", id="a link away"),
        pytest.param(writable, "is writable by others", id="a file writable by all"),
        pytest.param(in_a_writable_folder, "by others", id="a folder writable by all"),
        pytest.param(pipe, "is not a regular file", id="a pipe"),
        pytest.param(foreign, "belongs to user 1234; run", id="another user's"),
        pytest.param(import_missing, "is imported, but missing", id="no such import"),
    ],
)
def test_files_that_are_not_safe_to_write_are_left(
    make: object, sentence: str, node: Node
) -> None:
    assert callable(make)
    make(node)
    done = node.call()

    assert (done.returncode, done.stdout) == (1, "")
    assert sentence in done.stderr
    assert not any(path.endswith("resmgr") for path in node.files())


@pytest.mark.parametrize(
    "words",
    [
        ("--undo", "--request-timeout", "3s"),
        ("--undo", "--require-plugin", "x"),
        ("--tolerate-annotation", "x"),
        ("--require-plugin", "a b"),
        ("--containerd", "--crio"),
        ("--dry-run", "--restart"),
        ("--request-timeout", "soon"),
    ],
)
def test_inconsistent_flags_are_rejected(words: tuple[str, ...], node: Node) -> None:
    node.put(MAIN, STOCK_1_7)
    done = node.call(*words)

    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert node.files() == {MAIN: STOCK_1_7}


def test_a_file_that_changed_meanwhile_is_not_overwritten(node: Node) -> None:
    node.put(MAIN, "new")
    with pytest.raises(UnusableConfig, match="changed in the meantime"):
        HostFolder(str(node.root)).apply(
            FileChange(MAIN, "old", "x", is_edit=True), KEPT
        )

    assert node.files() == {MAIN: "new"}


def test_files_left_by_a_killed_process_do_not_matter(node: Node) -> None:
    node.put(MAIN, STOCK_1_7)
    node.put("/etc/containerd/.config.toml.nri-resmgr", "half")
    node.call()

    assert node.files() == {MAIN: ON, KEPT: STOCK_1_7}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param('test "$*" = "restart crio.service"', "", id="it did"),
        pytest.param(
            "echo Unit not found. >&2; exit 5",
            "written, but crio.service was not restarted: Unit not found.",
            id="it did not",
        ),
        pytest.param(None, "there is no systemctl", id="no systemd"),
    ],
)
def test_systemd_is_asked_to_restart(
    script: str | None, said: str, tmp_path: Path
) -> None:
    if script is not None:
        program = tmp_path / "systemctl"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    code = "from nri_resmgr.cli.enable_runtime.command import restart as r"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nr('crio.service')"],
        env={"PATH": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert said in done.stderr
    assert bool(done.returncode) == bool(said)
