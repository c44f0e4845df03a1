"""The cache builds once and never shows an incomplete folder."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from tests.real_host.cache import cached, locked, remove_parts


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def build_nothing(_: Path) -> None:
    """An empty folder is a result too."""


def test_two_at_once_build_once(tmp_path: Path) -> None:
    both, built = Barrier(2), []

    def build(folder: Path) -> None:
        built.append(folder)
        (folder / "file").write_text("whole")

    def ask() -> Path:
        both.wait()
        return cached("thing", ("1",), build, tmp_path)

    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(ask), pool.submit(ask)]

    assert len(built) == 1
    assert [content(answer.result()) for answer in answers] == [{"file": "whole"}] * 2


def test_other_inputs_build_another_folder(tmp_path: Path) -> None:
    first, second = (
        cached("thing", inputs, build_nothing, tmp_path)
        for inputs in (("a", "bc"), ("ab", "c"))
    )

    assert first != second


def test_a_failed_build_leaves_nothing_and_may_be_repeated(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "file").write_text("half")
        raise OSError("no space")

    def succeed(folder: Path) -> None:
        (folder / "file").write_text("whole")

    with pytest.raises(OSError, match="no space"):
        cached("thing", ("1",), fail, tmp_path)
    left = [path.name for path in tmp_path.iterdir() if path.is_dir()]
    again = cached("thing", ("1",), succeed, tmp_path)

    assert left == []
    assert content(again) == {"file": "whole"}


def test_files_left_by_a_killed_build_are_removed(tmp_path: Path) -> None:
    whole = cached("thing", ("1",), build_nothing, tmp_path)
    whole.rename(whole.with_name(f"{whole.name}.part-killed"))

    again = cached("thing", ("1",), build_nothing, tmp_path)

    assert [path for path in tmp_path.iterdir() if path.is_dir()] == [again]


def test_parts_of_killed_builds_are_removed_but_not_those_of_live_ones(
    tmp_path: Path,
) -> None:
    for name in ("killed", "live", "below/killed"):
        (tmp_path / f"{name}-1.part-x" / "proc").mkdir(parents=True)
    with locked(tmp_path / "live-1"):
        remove_parts(tmp_path)

    assert {one.name for one in tmp_path.rglob("*.part-*")} == {"live-1.part-x"}
