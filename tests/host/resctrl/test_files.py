"""The real file system's door, on plain folders: its calls, errors and lock."""

from __future__ import annotations

import errno
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nri_resmgr.host.resctrl import MountedResctrl


def files_in(root: Path) -> MountedResctrl:
    return MountedResctrl(str(root), timeout=0.0)


def test_texts_and_folders(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    files.mkdir("gold")
    (tmp_path / "gold/tasks").write_text("10\n" * 50_000)
    files.write("gold/tasks", "11\n12\n")
    (tmp_path / "schemata").touch()

    # A write does not cut what is there: the kernel's files are no files.
    assert files.read("gold/tasks") == "11\n12\n" + "10\n" * 49_998
    assert files.names("") == ("gold", "schemata")
    assert files.names("gold") == ("tasks",)
    assert [*map(files.exists, ("gold", "gold/tasks", "gold/x", "schemata/x"))] == [
        *(True, True, False, False)
    ]
    (tmp_path / "gold/tasks").unlink()
    files.rmdir("gold")
    assert files.names("") == ("schemata",)


@pytest.mark.parametrize(
    ("call", "number"),
    [
        pytest.param(lambda f: f.read("none"), errno.ENOENT, id="no file to read"),
        pytest.param(
            lambda f: f.write("none", "x"), errno.ENOENT, id="none is made by a write"
        ),
        pytest.param(lambda f: f.names("file"), errno.ENOTDIR, id="a file's names"),
        pytest.param(lambda f: f.read("folder"), errno.EISDIR, id="a folder's text"),
        pytest.param(lambda f: f.mkdir("folder"), errno.EEXIST, id="a folder twice"),
        pytest.param(lambda f: f.rmdir("none"), errno.ENOENT, id="no folder to remove"),
    ],
)
def test_errors_are_the_kernels(
    call: Callable[[MountedResctrl], object], number: int, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError) as error:  # noqa: PT011 - its errno is compared
        call(files_in(tmp_path))

    assert error.value.errno == number
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_a_write_that_is_cut_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "schemata").touch()
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    # A file that may not grow past this takes a part, as resctrl takes a page.
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, old[1]))
    try:
        with pytest.raises(OSError, match="Argument list too long"):
            files_in(tmp_path).write("schemata", "x" * 4097)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


HOLDER = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(fd, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


def test_the_lock_is_the_one_of_resctrls_users(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(BlockingIOError), files.locked():
            pass
        other.communicate(b"")
    with files.locked(), pytest.raises(BlockingIOError), files.locked():
        pass


def test_a_lock_that_is_let_go_of_soon_is_waited_for(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == b"locked\n"
        other.stdin.close()
        with MountedResctrl(str(tmp_path), timeout=30.0).locked():
            pass
