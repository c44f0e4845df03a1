"""Bad input and an unfit node: one clear sentence, and the right exit status."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import nri_resmgr

pytestmark = pytest.mark.process

FAILED, BAD_INPUT = 1, 2
HEAD = "apiVersion: config.nri/v1alpha1\nkind: StaticPolicy\n"


def config(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    return path


def outcome(*words: str | Path, weak: bool = False) -> tuple[int, str]:
    """Run the daemon; return exit status and last words."""
    done = nri_resmgr("run", *words, weak=weak)
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return done.returncode, done.stderr


def no_connection(path: Path, why: str) -> str:
    return (
        f"nri-resmgr: cannot connect to the NRI socket {path}: {why}; "
        "is NRI enabled in the runtime, and is this process root?\n"
    )


def test_a_missing_configuration(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"

    assert outcome("--config-file", path) == (
        BAD_INPUT,
        f"nri-resmgr: cannot read {path}: no such file or directory\n",
    )


def test_an_interrupted_import() -> None:
    # Shells start background commands, such as this test run, with SIGINT ignored.
    defaults = ("env", "--default-signal=INT")
    program = (sys.executable, "-X", "importtime", "-m", "nri_resmgr", "demo")
    command = (*defaults, *program)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        imported = iter(running.stderr)
        next(line for line in imported if "asyncio.events" in line)
        running.send_signal(signal.SIGINT)
        rest = "".join(imported)

    assert "Traceback" not in rest
    assert running.returncode == 128 + signal.SIGINT


def test_an_unreadable_workload_is_named_once(tmp_path: Path) -> None:
    done = nri_resmgr("simulate", tmp_path / "none.yaml")

    assert (done.returncode, done.stderr) == (
        BAD_INPUT,
        f"nri-resmgr: cannot read {tmp_path}/none.yaml: no such file or directory\n",
    )


def test_an_unreadable_configuration(tmp_path: Path) -> None:
    path = config(tmp_path, b"")
    path.chmod(0)

    assert outcome("--config-file", path, weak=True) == (
        BAD_INPUT,
        f"nri-resmgr: cannot read {path}: permission denied\n",
    )


def test_a_folder_for_a_configuration(tmp_path: Path) -> None:
    assert outcome("--config-file", tmp_path) == (
        BAD_INPUT,
        f"nri-resmgr: cannot read {tmp_path}: is a directory\n",
    )


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"\xff\xfe", id="not UTF-8"),
        pytest.param(b"a: [", id="not YAML"),
        pytest.param(b"- a\n- b\n", id="a list"),
        pytest.param(b"kind: StaticPolicy\n", id="no version"),
        pytest.param(
            b"apiVersion: config.nri/v1alpha1\nkind: X\nspec: {}\n", id="no such kind"
        ),
        pytest.param(HEAD.encode() + b"spec: {nonsense: 1}\n", id="an unknown key"),
        pytest.param(HEAD.encode() + b"spec: 7\n", id="a number for a spec"),
        pytest.param(b"!!python/object:os.system {}\n", id="a tag of Python"),
        pytest.param(b"a: &a [*a]\n", id="a list in itself"),
        pytest.param(b"\x00", id="a zero byte"),
    ],
)
def test_a_wrong_configuration_is_named_in_one_sentence(
    content: bytes, tmp_path: Path
) -> None:
    path = config(tmp_path, content)
    status, words = outcome("--config-file", path)

    assert status == BAD_INPUT
    assert words.startswith("nri-resmgr: ")
    assert str(path) in words
    assert words.count("\n") == 1


def test_a_document_that_does_not_fit_the_machine_ends_before_connecting(
    tmp_path: Path,
) -> None:
    spec = b"{availableResources: {cpu: 1}, reservedResources: {cpu: 'cpuset:0'}}"
    text = HEAD.encode() + b"spec: " + spec + b"\n"
    path, at = config(tmp_path, text), tmp_path / "nri.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(at))
        listener.listen()
        listener.setblocking(False)

        assert outcome("--config-file", path, "--nri-socket", at) == (
            BAD_INPUT,
            (
                f"nri-resmgr: {path}: $.spec.reservedResources.cpu: "
                "a list of CPUs needs a list of available CPUs (cpuset:LIST)\n"
            ),
        )
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(
            ["--nri-plugin-index", "7"],
            "nri-resmgr: plugin index '7': two digits are needed, 00 to 99\n",
            id="a wrong index",
        ),
        pytest.param(
            ["--nri-plugin-name", "a,b"],
            "nri-resmgr: plugin name 'a,b': "
            "only letters, digits and _.+- are allowed\n",
            id="a wrong name",
        ),
    ],
)
def test_bad_flags_are_rejected_with_a_sentence(
    words: list[str], sentence: str
) -> None:
    assert outcome(*words) == (BAD_INPUT, sentence)


def test_no_socket(tmp_path: Path) -> None:
    path = tmp_path / "nri.sock"

    assert outcome("--nri-socket", path, "--log-level", "error") == (
        FAILED,
        no_connection(path, "no such file or directory"),
    )


def test_a_socket_without_a_listener(tmp_path: Path) -> None:
    path = tmp_path / "nri.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))

    assert outcome("--nri-socket", path, "--log-level", "error") == (
        FAILED,
        no_connection(path, "connection refused"),
    )


def test_no_permission(tmp_path: Path) -> None:
    closed = tmp_path / "nri"
    closed.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(closed / "nri.sock"))
        listener.listen()
        closed.chmod(0)
        path = closed / "nri.sock"
        status, words = outcome("--nri-socket", path, "--log-level", "error", weak=True)
        closed.chmod(0o700)

    assert (status, words) == (FAILED, no_connection(path, "permission denied"))


def test_no_machine(tmp_path: Path) -> None:
    assert outcome("--host-root", tmp_path) == (
        FAILED,
        f"nri-resmgr: {tmp_path}/sys/devices/system/cpu/online: no such file\n",
    )
