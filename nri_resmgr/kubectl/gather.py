"""Writes a support bundle: what a bug report needs of nodes, in one archive."""

from __future__ import annotations

import io
import json
import os
import sys
import tarfile
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from nri_resmgr.kubectl.client import NAME
from nri_resmgr.kubectl.documents import API_VERSION
from nri_resmgr.kubectl.errors import CannotWrite, PluginError
from nri_resmgr.kubectl.pieces import Piece

_NOTE: Final = (
    "Values that are named like secrets, or look like them, are REDACTED. Names of "
    "pods, namespaces, nodes and images are in the bundle: look through it before you "
    "publish it."
)


def gather(path: Path, pieces: Iterable[Piece], now: float) -> int:
    """Write a bundle, for its owner only; what cannot be had is listed in it.

    Args:
        path: Of the archive, a compressed tar whose folder has the same name.
        pieces: Its files.
        now: Seconds since 1970, for all of them.

    Returns:
        The number of its files.

    Raises:
        CannotWrite: The file cannot be written; what was written of it is removed.
    """
    folder = path.name.removesuffix(".tar.gz").removesuffix(".tgz") or NAME
    try:
        # No file that is there: it may be of another user, or a link.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise _not_written(path, error) from None
    try:
        with (
            os.fdopen(handle, "wb") as file,
            tarfile.open(fileobj=file, mode="w:gz") as archive,
        ):
            add = partial(_add, archive, folder, int(now))
            return _add_all(add, pieces)
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _not_written(path, error) from None
        raise


def _add_all(add: Callable[[str, bytes], None], pieces: Iterable[Piece]) -> int:
    files: list[str] = []
    missing: dict[str, str] = {}
    for piece in pieces:
        try:
            contents = piece.contents()
        except PluginError as error:
            missing[piece.name] = str(error)
            print(f"{NAME}: without {piece.name}: {error}", file=sys.stderr)
        else:
            files.append(piece.name)
            add(piece.name, contents)
    about = {
        "apiVersion": API_VERSION,
        "kind": "SupportBundle",
        "version": _our_version(),
        "note": _NOTE,
        "files": files,
        "missing": missing,
    }
    add("about.json", f"{json.dumps(about, indent=2)}\n".encode())
    return len(files) + 1


def _add(
    archive: tarfile.TarFile, folder: str, now: int, name: str, data: bytes
) -> None:
    member = tarfile.TarInfo(f"{folder}/{name}")
    member.size, member.mtime = len(data), now
    archive.addfile(member, io.BytesIO(data))


def _our_version() -> str:
    try:
        return version(NAME)
    except PackageNotFoundError:  # a checkout without installation
        return ""


def _not_written(path: Path, error: OSError) -> CannotWrite:
    return CannotWrite(str(path), (error.strerror or str(error)).lower())
