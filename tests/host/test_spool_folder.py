"""The spool folder is read with distrust: regular files of its owner, nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nri_resmgr.host.spool_folder import SpoolFolder, SpoolUnreadable
from nri_resmgr.host.trust import UntrustedState
from nri_resmgr.values import HostError

NAME = "configuration.yaml"
AGENT = 65532

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="changes owners")


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    folder = tmp_path / "spool"
    folder.mkdir(0o755)
    return folder


def given(spool: Path, text: str = "a: 1\n") -> Path:
    path = spool / NAME
    path.write_text(text)
    path.chmod(0o644)
    return path


def read(spool: Path) -> bytes | HostError | None:
    return SpoolFolder(str(spool), (NAME,)).read()[NAME]


def test_a_file_is_read_and_a_missing_one_is_none(spool: Path) -> None:
    assert read(spool) is None

    given(spool)

    assert read(spool) == b"a: 1\n"


@as_root
def test_the_agent_owns_its_folder_and_its_files(spool: Path) -> None:
    path = given(spool)
    for one in (spool, path):
        os.chown(one, AGENT, AGENT)
    folder = SpoolFolder(str(spool), (NAME,))

    assert folder.read() == {NAME: b"a: 1\n"}
    assert folder.owner == AGENT


def linked(spool: Path) -> None:
    other = spool.parent / "secret"
    other.write_text("secret")
    (spool / NAME).symlink_to(other)


def of_root(spool: Path) -> None:
    """As by a hard link to a file that its owner cannot read."""
    given(spool)
    os.chown(spool, AGENT, AGENT)


def writable(spool: Path) -> None:
    given(spool).chmod(0o664)


def fifo(spool: Path) -> None:
    os.mkfifo(spool / NAME, 0o644)


def a_folder(spool: Path) -> None:
    (spool / NAME).mkdir(0o755)


def large(spool: Path) -> None:
    given(spool, "#" * ((4 << 20) + 1))


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (linked, "is a symbolic link"),
        pytest.param(of_root, "belongs to user 0, not to 65532", marks=as_root),
        (writable, "can be written by others"),
        (fifo, "is no regular file"),
        (a_folder, "is no regular file"),
        (large, "a spool file may have 4 MiB"),
    ],
)
def test_another_file_is_not_read(
    spool: Path, spoil: Callable[[Path], None], why: str
) -> None:
    spoil(spool)

    found = read(spool)

    assert isinstance(found, HostError)
    assert why in str(found)


def open_to_all(spool: Path) -> str:
    spool.chmod(0o777)
    return "can be written by others"


def below_a_folder_for_all(spool: Path) -> str:
    os.chown(spool, AGENT, AGENT)
    spool.parent.chmod(0o1777)
    return "who could put another spool folder there"


def below_a_folder_of_another(spool: Path) -> str:
    os.chown(spool.parent, AGENT, AGENT)
    return "whose parents belong to root"


@pytest.mark.parametrize(
    "spoil",
    [
        open_to_all,
        pytest.param(below_a_folder_for_all, marks=as_root),
        pytest.param(below_a_folder_of_another, marks=as_root),
    ],
)
def test_a_folder_that_others_could_have_filled_is_not_read(
    spool: Path, spoil: Callable[[Path], str]
) -> None:
    given(spool)
    why = spoil(spool)

    with pytest.raises(UntrustedState) as caught:
        read(spool)

    assert why in str(caught.value)


def test_a_link_in_place_of_the_folder_is_not_followed(
    tmp_path: Path, spool: Path
) -> None:
    given(spool)
    link = tmp_path / "link"
    link.symlink_to(spool)

    with pytest.raises(UntrustedState, match="is a symbolic link"):
        read(link)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpoolUnreadable, match="there is no such folder"):
        read(tmp_path / "none")


def replaced(spool: Path) -> None:
    new = spool / "new"
    new.write_text("a: 1\n")
    new.rename(spool / NAME)


def removed(spool: Path) -> None:
    (spool / NAME).unlink()


def folder_gone(spool: Path) -> None:
    spool.rename(spool.with_name("away"))


def mode_changed(spool: Path) -> None:
    (spool / NAME).chmod(0o600)


@pytest.mark.parametrize("change", [replaced, removed, folder_gone, mode_changed])
def test_a_change_is_detected(spool: Path, change: Callable[[Path], None]) -> None:
    path = given(spool)
    os.utime(path, ns=(10**18, 10**18))
    folder = SpoolFolder(str(spool), (NAME,))
    while folder.has_changed():  # its ctime may be too young to be relied upon
        folder.read()

    change(spool)

    assert folder.has_changed()
