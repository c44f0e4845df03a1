"""Files of workloads on the command line: files, folders, and standard input."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_resmgr.cli.chosen_machine import readable
from nri_resmgr.cli.documents import name_of, read_document
from nri_resmgr.scenario.steps import LeftOut
from nri_resmgr.values import InputError

MANIFESTS: Final = (".yaml", ".yml", ".json")
"""Ends of the names of manifests."""


@dataclass(eq=False)
class NoWorkload(InputError):
    """A folder has no file of a workload."""

    folder: Path

    def __str__(self) -> str:
        return f"{self.folder}: no file in it ends in {_any_of(MANIFESTS)}"


def read_texts(paths: Sequence[Path]) -> tuple[dict[str, str], tuple[LeftOut, ...]]:
    """Read files, the files in folders and those below, and ``-``, standard input.

    Returns:
        The texts by the names of the files, and the files of folders that are no
        manifests by their names. Hidden files and folders are ignored.

    Raises:
        UnreadableFile: A file or a folder cannot be read.
        NoWorkload: A folder has no file of a workload.
    """
    texts: dict[str, str] = {}
    left_out: list[LeftOut] = []
    for path in paths:
        files = [path]
        with readable(path):
            is_folder = path.is_dir()
        if is_folder:
            inside = list(files_below(path))
            files = [file for file in inside if file.suffix in MANIFESTS]
            others = (file for file in inside if file.suffix not in MANIFESTS)
            left_out += (not_read(file) for file in others)
            if not files:
                raise NoWorkload(path)
        texts |= read_all(files)
    return texts, tuple(left_out)


def read_all(files: Iterable[Path]) -> dict[str, str]:
    """Read files; return the texts by their names.

    Raises:
        UnreadableFile: One cannot be read.
    """
    return {str(name_of(file)): read_document(file) for file in files}


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and below, by name, but for hidden ones.

    Raises:
        UnreadableFile: A folder cannot be read.
    """
    with readable(folder):
        found = [
            (Path(one.path), one.is_dir(follow_symlinks=False), one.is_file())
            for one in sorted(os.scandir(folder), key=lambda one: one.name)
            # Such as .git, and the ..data of a mounted ConfigMap.
            if not one.name.startswith(".")
        ]
    for path, is_folder, is_file in found:
        if is_folder:
            yield from files_below(path)
        elif is_file:
            yield path


def not_read(file: Path, suffixes: Sequence[str] = MANIFESTS) -> LeftOut:
    """Name a file that is left out, since its name has no end of *suffixes*."""
    why = f"its name does not end in {_any_of(suffixes)}"
    return LeftOut("", "", "", why, str(file), is_file=True)


def _any_of(suffixes: Sequence[str]) -> str:
    return ", ".join(suffixes[:-1]) + f" or {suffixes[-1]}"
