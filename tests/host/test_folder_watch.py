"""Files that are renamed into a folder are noticed, and nothing else is."""

from __future__ import annotations

import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from nri_resmgr.host.folder_watch import FolderWatch


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "spool"
    path.mkdir()
    return path


@pytest.fixture
def watch(folder: Path) -> Iterator[FolderWatch]:
    one = FolderWatch(str(folder))
    one.renew()
    yield one
    one.close()
    assert one.fileno() == -1


def descriptors() -> set[str]:
    return {one.name for one in Path("/proc/self/fd").iterdir()}


def is_readable(watch: FolderWatch) -> bool:
    return bool(select.select([watch], [], [], 0)[0])


def put(folder: Path, name: str = "file") -> None:
    new = folder / f".{name}.new"
    new.write_text("text")
    new.rename(folder / name)


def test_a_file_that_is_renamed_into_it_is_noticed_once(
    watch: FolderWatch, folder: Path
) -> None:
    assert not is_readable(watch)
    put(folder)
    assert is_readable(watch)
    watch.drain()
    assert not is_readable(watch)
    watch.renew()
    put(folder)
    assert is_readable(watch)


def test_unfinished_files_wake_nothing(watch: FolderWatch, folder: Path) -> None:
    (folder / ".file.new").write_text("text")
    (folder / ".file.new").unlink()

    assert not is_readable(watch)


def test_any_number_of_events_is_forgotten(watch: FolderWatch, folder: Path) -> None:
    for number in range(3000):
        put(folder, f"{number}-{'x' * 200}")
    while is_readable(watch):
        watch.drain()  # bounded, so more than once
    put(folder)

    assert is_readable(watch)


def test_the_folder_of_now_is_watched_and_that_of_before_is_not(
    watch: FolderWatch, folder: Path
) -> None:
    away = folder.rename(folder.with_name("away"))
    watch.renew()
    assert watch.fileno() == -1
    folder.mkdir()
    watch.renew()
    watch.drain()
    put(away)
    assert not is_readable(watch)
    put(folder)
    assert is_readable(watch)


def test_no_link_is_followed(folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    watch = FolderWatch(str(link))
    watch.renew()

    assert watch.fileno() == -1
    watch.close()


def test_nothing_is_left_open(folder: Path) -> None:
    before = descriptors()
    watch = FolderWatch(str(folder))
    for _ in range(3):
        watch.renew()
    watch.close()

    assert descriptors() == before
