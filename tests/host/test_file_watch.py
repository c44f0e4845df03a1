"""A watched file reports every change of what would be read."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from nri_resmgr.host.bounded import DOCUMENT
from nri_resmgr.host.file_watch import WatchedFile
from nri_resmgr.host.text_file import UnreadableFile


def at_rest(path: Path) -> WatchedFile:
    """Return a file that was read some time after its last change."""
    file = WatchedFile(str(path))
    time.sleep(0.06)
    file.read()
    return file


def test_a_file_that_was_read_has_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("a")
    file = at_rest(path)
    path.read_text()

    assert (file.has_changed(), file.read()) == (False, "a")


def test_a_file_written_within_the_last_tick_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "file"
    doubted = 0
    for number in range(20):  # a busy machine may need longer than a tick
        path.write_text(f"{number:02}")
        file = WatchedFile(str(path))
        file.read()
        doubted += file.has_changed()

    # Another write in the same tick of the clock might not show.
    assert doubted
    assert not at_rest(path).has_changed()


def test_a_file_that_was_never_read_has_changed(tmp_path: Path) -> None:
    assert WatchedFile(str(tmp_path / "none")).has_changed()


def test_a_file_that_stays_missing_has_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file"
    file = WatchedFile(str(path))
    with pytest.raises(UnreadableFile, match="no such file or directory"):
        file.read()
    away = file.has_changed()
    path.parent.mkdir()
    path.write_text("a")

    assert (away, file.has_changed(), file.read()) == (False, True, "a")


def test_lost_permissions_show(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("a")
    file = at_rest(path)
    path.chmod(0)

    assert file.has_changed()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(b"\xff", "not UTF-8 at byte 0", id="not UTF-8"),
        pytest.param(b"a" * (DOCUMENT.most + 1), "it has 8.0 MiB", id="too large"),
    ],
)
def test_content_that_is_not_utf_8_or_too_large_is_refused(
    tmp_path: Path, content: bytes, why: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)

    with pytest.raises(UnreadableFile, match=f"cannot read {path}: {why}"):
        WatchedFile(str(path)).read()


def test_a_directory_is_refused_and_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnreadableFile, match="is a directory"):
        WatchedFile(str(tmp_path)).read()

    assert WatchedFile(str(tmp_path / "pipe")).read() == ""
