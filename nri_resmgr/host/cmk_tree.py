"""Reads the tree of folders in which CMK kept its pools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from nri_resmgr.host.bounded import reason
from nri_resmgr.host.text_file import UnreadableFile, read_text_file
from nri_resmgr.values.documents import JsonObject

_POOLS: Final = "pools"
_EXCLUSIVE: Final = "exclusive"
_IS_EXCLUSIVE: Final = "1"


def read_cmk_tree(folder: Path) -> JsonObject:
    """Read a tree into the form that files of pools have.

    Below *folder* are ``pools/POOL/exclusive``, a file, and a folder
    ``pools/POOL/SOCKET/CPUS`` for each list of CPUs.

    Raises:
        UnreadableFile: A part of it is missing or cannot be read.

    Source:
        CMK, docs/config.md; CRI Resource Manager, the policy ``static-pools``.
    """
    return {_POOLS: {one.name: _pool(one) for one in _folders(folder / _POOLS)}}


def _pool(folder: Path) -> JsonObject:
    return {
        _EXCLUSIVE: read_text_file(folder / _EXCLUSIVE).strip() == _IS_EXCLUSIVE,
        "cpuLists": [
            {"Socket": _number(socket), "Cpuset": cpus.name}
            for socket in _folders(folder)
            for cpus in _folders(socket)
        ],
    }


def _number(socket: Path) -> int:
    if not (socket.name.isascii() and socket.name.isdigit()):
        raise UnreadableFile(
            socket, "expected a folder named by the number of a socket"
        )
    return int(socket.name)


def _folders(folder: Path) -> Iterator[Path]:
    try:
        # In the order of CRI Resource Manager: by name.
        return iter(sorted(one for one in folder.iterdir() if one.is_dir()))
    except OSError as error:
        raise UnreadableFile(folder, reason(error)) from None
