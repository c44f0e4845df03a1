"""Launchers in a runtime's plugin folder, and what they must not break."""

from __future__ import annotations

import importlib.util
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from nri_resmgr.cli import launcher
from nri_resmgr.cli.install import (
    AlreadyInstalled,
    Folders,
    FolderUnusable,
    NoSuchPlugin,
    NotInstalled,
    WouldBreakRuntime,
    find_program,
    install,
    uninstall,
)
from nri_resmgr.cli.launcher import MARK, compile_folders, import_path, launcher_text
from nri_resmgr.stub import Identity
from nri_resmgr.testing import Runtime, RuntimeOptions
from tests.cli.command import nri_resmgr

pytestmark = pytest.mark.process

HELLO = Identity("hello", "10")
PLUGIN = """\
from nri_resmgr.stub import serve

class Hello:
    def stop_container(self, pod, container): ...

serve(Hello())
"""


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "plugins", tmp_path / "conf.d")


@pytest.fixture
def hello(tmp_path: Path) -> str:
    path = tmp_path / "hello.py"
    path.write_text(PLUGIN)
    return str(path)


def into(folders: Folders) -> list[str | Path]:
    return ["--plugin-dir", folders.plugins, "--config-dir", folders.configs]


def executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_the_launcher_is_executable_and_alone(folders: Folders, hello: str) -> None:
    done = install(hello, HELLO, folders)

    assert done.launcher == folders.plugins / "10-hello"
    assert stat.S_IMODE(done.launcher.stat().st_mode) == 0o755
    assert [path.name for path in folders.plugins.iterdir()] == ["10-hello"]
    assert list(folders.configs.iterdir()) == []


async def test_a_runtime_starts_an_installed_plugin(
    folders: Folders, hello: str, tmp_path: Path
) -> None:
    install(hello, HELLO, folders)
    options = RuntimeOptions(
        plugin_folder=folders.plugins,
        config_folder=folders.configs,
        registration_timeout=20.0,  # a busy machine starts Python slowly
        request_timeout=10.0,
    )
    async with Runtime(tmp_path, options=options) as runtime:
        assert runtime.plugins == ("10-hello",)


@pytest.mark.parametrize(
    "folder",
    [
        pytest.param("short", id="a path that fits into a first line"),
        pytest.param("long" * 50, id="one that does not"),
        pytest.param("with a space", id="one with a space"),
    ],
)
def test_a_launcher_needs_no_environment(folder: str, tmp_path: Path) -> None:
    # A link is as good as an interpreter: -S keeps its environment out anyway.
    python = tmp_path / folder / "python3"
    python.parent.mkdir()
    python.symlink_to(Path(sys.executable).resolve())
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys, attr, nri_resmgr\n"
        "print(sys.argv[0], sys.flags.isolated, sys.flags.no_site, __name__)"
    )
    launcher = executable(tmp_path / "10-x", launcher_text(program, python=str(python)))
    done = subprocess.run(
        ["/usr/bin/env", "-i", launcher], capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.stderr) == (f"{program} 1 1 __main__\n", "")


def test_the_import_path_of_a_launcher_has_each_folder_once() -> None:
    folders = import_path(["attr", "attrs", "nri_resmgr", "nri_proto", "no_such_one"])

    assert len(folders) == len(set(folders))
    assert all((folder / "attr").is_dir() for folder in folders[:1])


@pytest.mark.parametrize(
    ("name", "index"), [("a/b", "10"), ("", "10"), ("a b", "10"), ("a", "1")]
)
def test_a_name_that_would_break_the_runtime_is_refused(
    name: str, index: str, folders: Folders, hello: str
) -> None:
    words = ["--index", index, "--name", name or " "]
    done = nri_resmgr("install", hello, *words, *into(folders))

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("nri-resmgr: plugin ")
    assert not folders.plugins.exists()


@pytest.mark.parametrize("other", ["README", "helper.sh", "1-x", "100-x", "10_x"])
def test_an_executable_that_would_break_the_runtime_is_reported(
    other: str, folders: Folders, hello: str
) -> None:
    bad = executable(folders.plugins / other)
    with pytest.raises(WouldBreakRuntime) as refusal:
        install(hello, HELLO, folders)

    assert refusal.value.paths == (bad,)
    assert not (folders.plugins / "10-hello").exists()


def test_a_link_to_a_folder_would_break_the_runtime_too(
    folders: Folders, hello: str
) -> None:
    folders.plugins.mkdir()
    (folders.plugins / "docs").symlink_to("/usr")
    with pytest.raises(WouldBreakRuntime):
        install(hello, HELLO, folders)


def test_entries_that_runtimes_ignore_are_ignored(folders: Folders, hello: str) -> None:
    (folders.plugins / "folder").mkdir(parents=True)
    (folders.plugins / "README").write_text("read me")
    executable(folders.plugins / "20-other")
    install(hello, HELLO, folders)

    assert (folders.plugins / "10-hello").exists()


@pytest.mark.parametrize("index", ["10", "99"])
def test_a_second_plugin_of_the_same_name_is_refused(
    index: str, folders: Folders, hello: str
) -> None:
    install(hello, HELLO, folders)
    before = (folders.plugins / "10-hello").read_text()
    with pytest.raises(AlreadyInstalled) as refusal:
        install(hello, Identity("hello", index), folders)

    assert str(refusal.value) == (
        f"{folders.plugins}/10-hello exists: uninstall it first, or choose another name"
    )
    assert (folders.plugins / "10-hello").read_text() == before


def test_a_configuration_is_written_once_and_kept(
    folders: Folders, hello: str, tmp_path: Path
) -> None:
    first, second = tmp_path / "1.yaml", tmp_path / "2.yaml"
    first.write_text("a: \u2713\n")
    second.write_text("b: 2\n")
    path = folders.configs / "10-hello.conf"
    is_new = install(hello, HELLO, folders, first).config_is_new
    removed = uninstall("hello", folders)
    was_new = install(hello, HELLO, folders, second).config_is_new

    assert (is_new, was_new) == (True, False)
    assert removed == [folders.plugins / "10-hello"]
    assert path.read_text() == "a: \u2713\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_purging_takes_the_configuration_too(
    folders: Folders, hello: str, tmp_path: Path
) -> None:
    (tmp_path / "x.yaml").write_text("a: 1\n")
    install(hello, HELLO, folders, tmp_path / "x.yaml")
    (folders.configs / "hello.conf").write_text("another's\n")
    removed = uninstall("10-hello", folders, purge=True)

    assert removed == [folders.plugins / "10-hello", folders.configs / "10-hello.conf"]
    assert [path.name for path in folders.configs.iterdir()] == ["hello.conf"]


@pytest.mark.parametrize("name", ["hello", "99-hello", "other", "10"])
def test_only_installed_launchers_are_removed(name: str, folders: Folders) -> None:
    foreign = executable(folders.plugins / "10-hello")
    with pytest.raises(NotInstalled) as refusal:
        uninstall(name, folders)

    assert str(refusal.value) == (
        f"no plugin {name!r} that nri-resmgr installed in {folders.plugins}"
    )
    assert foreign.exists()
    assert MARK not in foreign.read_text()


def test_a_shipped_plugin_brings_its_sample(folders: Folders) -> None:
    done = install("resource-policy", Identity("resource-policy", "90"), folders)

    assert find_program("resource-policy").name == "resource-policy"
    assert done.config_is_new
    assert "kind: TopologyAwarePolicy" in done.config.read_text()


def test_an_unknown_program_is_reported_with_the_known_ones(folders: Folders) -> None:
    with pytest.raises(NoSuchPlugin, match=r"logger, .*resource-policy, .*template"):
        install("nonsense", HELLO, folders)
    assert not folders.plugins.exists()


@pytest.mark.parametrize(
    ("content", "why"),
    [(None, "no such file or directory"), (b"\xff", "not UTF-8 at byte 0")],
    ids=["missing", "not text"],
)
def test_a_configuration_that_cannot_be_read(
    content: bytes | None, why: str, folders: Folders, hello: str, tmp_path: Path
) -> None:
    path = tmp_path / "c.yaml"
    if content is not None:
        path.write_bytes(content)
    done = nri_resmgr(
        "install", hello, "--index", "10", "--config", path, *into(folders)
    )

    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        f"nri-resmgr: cannot read {path}: {why}\n",
    )
    assert not (folders.plugins / "10-hello").exists()


def test_a_read_only_plugin_folder_is_reported(folders: Folders, hello: str) -> None:
    folders.plugins.mkdir()
    folders.configs.mkdir()
    folders.plugins.chmod(0o555)
    done = nri_resmgr("install", hello, "--index", "10", *into(folders), weak=True)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"nri-resmgr: cannot write {folders.plugins}/.10-hello.{_pid(done.stderr)}: "
        "permission denied; is this process root?\n"
    )


def _pid(text: str) -> str:
    return text.partition("10-hello.")[2].partition(":")[0]


def test_a_file_in_place_of_a_folder(folders: Folders, hello: str) -> None:
    folders.plugins.write_text("")
    with pytest.raises(FolderUnusable, match="file exists"):
        install(hello, HELLO, folders)


def test_the_commands_report_the_changed_files(folders: Folders, hello: str) -> None:
    came = nri_resmgr(
        "install", os.path.relpath(hello), "--index", "10", *into(folders)
    )
    went = nri_resmgr("uninstall", "hello", *into(folders))

    assert (came.returncode, came.stdout.splitlines()) == (
        0,
        [
            f"installed {folders.plugins}/10-hello",
            "restart the runtime to start the plugin",
        ],
    )
    assert (went.returncode, went.stdout) == (
        0,
        f"removed {folders.plugins}/10-hello\n",
    )
    assert list(folders.plugins.iterdir()) == []


SHOP = """\
from goods import NAME
print(NAME)
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A program that is a folder with a module beside ``__main__.py``."""
    program = tmp_path / "shop"
    program.mkdir()
    (program / "__main__.py").write_text(SHOP)
    (program / "goods.py").write_text("NAME = 'tea'\n")
    return program


def cached(module: Path) -> Path:
    return Path(importlib.util.cache_from_source(str(module)))


def test_an_installed_plugin_is_compiled(shop: Path, folders: Folders) -> None:
    missing = cached(Path(launcher.__file__).with_name("demo.py"))
    missing.unlink(missing_ok=True)
    done = nri_resmgr("install", shop, "--index", "10", *into(folders))
    here = cached(shop / "goods.py").read_bytes()

    assert done.stdout.splitlines()[-2:] == [
        f"installed {folders.plugins}/10-shop",
        "restart the runtime to start the plugin",
    ]
    assert missing.exists()
    # As the interpreter of the launcher would have it, and not of another version.
    assert here[:4] == importlib.util.MAGIC_NUMBER


def test_a_folder_where_no_byte_code_can_be_written_is_reported(
    shop: Path, folders: Folders
) -> None:
    (shop / "__pycache__").write_text("in the way")
    done = nri_resmgr("install", shop, "--index", "10", *into(folders))
    launched = subprocess.run(
        [folders.plugins / "10-shop"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0
    assert "byte code not written, starts are slower: " in done.stdout
    assert (launched.stdout, launched.returncode) == ("tea\n", 0)


def test_a_missing_interpreter_is_reported(shop: Path) -> None:
    why = compile_folders([shop], python="/no/such/python3")

    assert why == "/no/such/python3: No such file or directory"
