"""The state directory: what is kept in it, and whom it is refused for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nri_resmgr.host.state_dir import StateDir, StateInUse, StateUnusable
from nri_resmgr.host.trust import UntrustedState

NOBODY = 65534


def names(state: StateDir) -> list[str]:
    return sorted(path.name for path in Path(state.path).iterdir())


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDir]:
    opened = StateDir.open(f"{tmp_path}/state/")
    yield opened
    opened.close()


def test_the_directory_is_accessible_to_its_owner_only(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        state = StateDir.open(f"{tmp_path}/var/state")
        state.lock()
        state.write("policy", "text")
    finally:
        os.umask(old)
    state.close()

    folder = tmp_path / "var/state"
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert modes == {"lock": 0o600, "policy": 0o600}


def test_the_next_process_reads_what_was_written(state: StateDir) -> None:
    before = state.read("policy")
    for text in ("long text\n" * 100_000, "", "short \U0001f4be"):
        state.write("policy", text)
        again = StateDir.open(state.path)
        assert again.read("policy") == text
        again.close()
    assert before is None
    assert names(state) == ["policy"]


def test_bytes_that_are_no_text_are_kept_for_the_reader(state: StateDir) -> None:
    Path(state.path, "policy").write_bytes(b"\xff\n")
    found = state.read("policy")

    assert found == "\udcff\n"
    state.write("policy", found)
    assert Path(state.path, "policy").read_bytes() == b"\xff\n"


def test_a_reader_has_the_old_text_or_the_new_one(state: StateDir) -> None:
    state.write("policy", "old")
    with Path(state.path, "policy").open() as reader:
        state.write("policy", "new")
        assert reader.read() == "old"
    assert state.read("policy") == "new"


def test_files_left_by_a_killed_writer_are_replaced(state: StateDir) -> None:
    Path(state.path, ".policy.new").write_text("half a te")
    state.write("policy", "text")

    assert names(state) == ["policy"]


def test_a_text_is_removed_once(state: StateDir) -> None:
    state.write("policy", "text")
    state.remove("policy")
    state.remove("policy")

    assert names(state) == []


def test_the_last_five_invalid_files_are_kept(state: StateDir) -> None:
    paths = []
    for number in range(7):
        state.write("policy", str(number))
        paths.append(state.set_aside("policy"))

    names = [Path(path).name.removeprefix("policy.bad-") for path in paths]
    kept = sorted(Path(path).read_text() for path in set(paths))
    assert names == ["1", "2", "3", "4", "5", "1", "2"]
    assert kept == ["2", "3", "4", "5", "6"]
    assert state.read("policy") is None


def test_a_lock_keeps_others_out_and_names_its_owner(state: StateDir) -> None:
    state.lock()
    state.lock()
    other = StateDir.open(state.path)
    with pytest.raises(StateInUse) as refusal:
        other.lock()
    state.close()
    other.lock()
    other.close()

    assert str(refusal.value) == (
        f"{state.path} is in use by process {os.getpid()}; "
        "stop it, or use another --state-dir"
    )


def test_a_lock_ends_with_a_process_that_is_killed(state: StateDir) -> None:
    program = (
        "import sys, signal; from nri_resmgr.host.state_dir import StateDir; "
        "StateDir.open(sys.argv[1]).lock(); print('locked', flush=True); signal.pause()"
    )
    command = [sys.executable, "-c", program, state.path]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(StateInUse, match=f"process {other.pid};"):
            state.lock()
        other.kill()
    state.lock()


def test_a_lock_that_another_removes_is_made_again(state: StateDir) -> None:
    Path(state.path, "lock").write_text("123456 of an earlier one")
    state.lock()

    assert Path(state.path, "lock").read_text() == f"{os.getpid()}\n"


Spoil = Callable[[Path], object]


@needs_root
@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        pytest.param(
            lambda d: os.chown(d, NOBODY, -1),
            "{d} belongs to user 65534, not to 0; chown 0 {d}, or remove it",
            id="a directory of another user",
        ),
        pytest.param(
            lambda d: d.chmod(0o770),
            "{d} can be written by others; chmod go-w {d}",
            id="a directory that a group may write to",
        ),
        pytest.param(
            lambda d: d.chmod(0o703),
            "{d} can be written by others; chmod go-w {d}",
            id="a directory that all may write to",
        ),
        pytest.param(
            lambda d: d.rename(d.with_name("real")) and d.symlink_to("real"),
            "{d} is a symbolic link; name the directory that it leads to",
            id="a link to a directory",
        ),
        pytest.param(
            lambda d: (d / "policy").unlink() or d.rmdir() or d.write_text(""),
            "{d} is no directory; remove {d}",
            id="a file in place of the directory",
        ),
        pytest.param(
            lambda d: os.chown(d / "policy", NOBODY, -1),
            "{d}/policy belongs to user 65534, not to 0; "
            "chown 0 {d}/policy, or remove it",
            id="a file of another user",
        ),
        pytest.param(
            lambda d: (d / "policy").chmod(0o620),
            "{d}/policy can be written by others; chmod go-w {d}/policy",
            id="a file that a group may write to",
        ),
        pytest.param(
            lambda d: (d / "lock").symlink_to("policy"),
            "{d}/lock is a symbolic link; remove {d}/lock",
            id="a link in place of a file",
        ),
        pytest.param(
            lambda d: os.mkfifo(d / "lock", 0o600),
            "{d}/lock is no regular file; remove {d}/lock",
            id="a pipe in place of a file",
        ),
    ],
)
def test_a_directory_that_others_may_have_changed_is_refused(
    spoil: Spoil, sentence: str, tmp_path: Path
) -> None:
    folder = tmp_path / "state"
    folder.mkdir(0o700)
    (folder / "policy").touch(0o600)
    spoil(folder)

    with pytest.raises(UntrustedState) as refusal:
        StateDir.open(str(folder))
    assert str(refusal.value) == sentence.format(d=folder)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        pytest.param(
            lambda path: path.symlink_to("/etc/hostname"),
            "is a symbolic link",
            id="a link",
        ),
        pytest.param(os.mkfifo, "is no regular file", id="a pipe"),
        pytest.param(lambda path: path.mkdir(), "is no regular file", id="a folder"),
        pytest.param(
            lambda path: path.touch() or path.chmod(0o666),
            "can be written by others",
            id="a file that all may write to",
        ),
    ],
)
def test_a_file_is_judged_when_it_is_read_and_when_it_is_locked(
    spoil: Spoil, sentence: str, state: StateDir
) -> None:
    spoil(Path(state.path, "policy"))
    with pytest.raises(UntrustedState, match=re.escape(f"policy {sentence}; ")):
        state.read("policy")
    spoil(Path(state.path, "lock"))
    with pytest.raises(UntrustedState, match=re.escape(f"lock {sentence}; ")):
        state.lock()


def in_use(path: str) -> bool:
    other = StateDir.open(path)
    try:
        other.lock()
    except StateInUse:
        return True
    finally:
        other.close()
    return False


def test_without_its_lock_file_a_directory_is_still_locked(state: StateDir) -> None:
    state.lock()
    Path(state.path, "lock").unlink()

    assert in_use(state.path)
    state.close()
    assert not in_use(state.path)


def spoiled(state: StateDir, how: str) -> None:
    folder = Path(state.path)
    folder.rename(folder.with_name("old"))
    if how == "made again":
        folder.mkdir(0o700)


@pytest.mark.parametrize("how", ["removed", "made again"])
def test_a_directory_that_was_replaced_is_used_and_locked(
    state: StateDir, how: str
) -> None:
    state.lock()
    state.write("policy", "old")
    before = len(tuple(Path("/proc/self/fd").iterdir()))
    spoiled(state, how)
    assert state.was_replaced()
    state.write("policy", "text")

    assert Path(state.path, "policy").read_text() == state.read("policy") == "text"
    assert not state.was_replaced()
    assert in_use(state.path)
    assert len(tuple(Path("/proc/self/fd").iterdir())) == before
    assert Path(state.path).stat().st_mode & 0o777 == 0o700


def test_a_directory_that_another_process_made_again_is_not_written(
    state: StateDir,
) -> None:
    state.lock()
    spoiled(state, "removed")
    other = StateDir.open(state.path)
    other.lock()
    for _ in range(2):
        with pytest.raises(StateInUse, match="in use by process"):
            state.write("policy", "text")
    other.close()
    state.write("policy", "text")

    assert state.read("policy") == "text"


def test_a_directory_that_cannot_be_opened_is_opened_later(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "state"
    (tmp_path / "a").symlink_to("/proc/no")
    state = StateDir.unopened(f"{folder}/")
    with pytest.raises(StateUnusable, match="no such file or directory"):
        state.read("policy")
    (tmp_path / "a").unlink()
    before = state.read("policy")
    state.write("policy", "text")

    assert (before, state.read("policy")) == (None, "text")
    assert in_use(str(folder))
    state.close()


def test_a_directory_that_cannot_be_made_again_takes_nothing(state: StateDir) -> None:
    Path(state.path).rmdir()
    Path(state.path).touch()
    with pytest.raises(UntrustedState, match="is no directory"):
        state.write("policy", "text")


def test_a_directory_that_cannot_be_made_is_reported() -> None:
    with pytest.raises(StateUnusable, match="/proc/state: no such file or directory"):
        StateDir.open("/proc/state")
