"""A machine in one small archive, for bug reports, tests and simulations."""

from __future__ import annotations

import io
import json
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_resmgr.host.discovery import read_machine
from nri_resmgr.host.recorded import RecordedTree, RecordingTree
from nri_resmgr.host.tree import Tree
from nri_resmgr.topology import Machine
from nri_resmgr.topology.document import (
    BadMachineDocument,
    from_document,
    to_document,
)
from nri_resmgr.values import InputError

# A reader of another format reads the host's files again instead.
_FORMAT: Final = 1
_MODEL: Final = "machine.json"
_HOST: Final = "host"

# More than the largest machine needs; an archive may come from anyone.
_MAX_BYTES: Final = 1 << 28


@dataclass(eq=False)
class BadDump(InputError):
    """A file is no dump of a machine."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: not a dump of a machine: {self.why}"


def write_dump(tree: Tree, path: Path) -> Machine:
    """Read the machine and write it, with the files it was read from.

    The archive is a compressed tar: first the model as JSON, then the files
    below ``host/``, so that the reading itself can be repeated anywhere. What
    the Speed Select driver answered is in the model only.

    Raises:
        HostError: The machine cannot be read.
        OSError: The archive cannot be written.
    """
    recording = RecordingTree(tree)
    machine = read_machine(recording)
    model = json.dumps({"format": _FORMAT, "machine": to_document(machine)})
    with tarfile.open(path, "w:gz") as archive:
        _add_file(archive, _MODEL, model)
        recorded = recording.recorded()
        for name, text in sorted(recorded.files.items()):
            _add_file(archive, _HOST + name, f"{text}\n")
        for name, target in sorted(recorded.links.items()):
            link = tarfile.TarInfo(_HOST + name)
            link.type = tarfile.SYMTYPE
            link.linkname = target
            archive.addfile(link)
    return machine


def _add_file(archive: tarfile.TarFile, name: str, text: str) -> None:
    data = text.encode()
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def load_dump(path: Path) -> Machine:
    """Load the machine of a dump; only the first file of it is read.

    A dump of another format is read again from its files.

    Raises:
        BadDump: The file is no dump, or a damaged one.
        OSError: The file cannot be read.
    """
    name, text, _ = next(_members(path), ("", "", ""))
    try:
        model = json.loads(text) if name == _MODEL else None
        if isinstance(model, dict) and model.get("format") == _FORMAT:
            return from_document(model.get("machine"))
    except (ValueError, BadMachineDocument) as error:
        raise BadDump(str(path), str(error)) from error
    return read_machine(load_files(path))


def load_files(path: Path) -> RecordedTree:
    """Load the host's files of a dump, to read the machine from them again.

    Raises:
        BadDump: The file is no dump, or a damaged one.
        OSError: The file cannot be read.
    """
    files: dict[str, str] = {}
    links: dict[str, str] = {}
    for name, text, target in _members(path):
        if not name.startswith(f"{_HOST}/"):
            continue
        if target:
            links[name.removeprefix(_HOST)] = target
        else:
            files[name.removeprefix(_HOST)] = text.strip()
    if not files:
        raise BadDump(str(path), "it has no files of a host")
    return RecordedTree(files, links)


def _members(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield name, text and link target; nothing is ever unpacked to disk."""
    size = 0
    try:
        with tarfile.open(path, "r|gz") as archive:
            for member in archive:
                size += tarfile.BLOCKSIZE + member.size
                if size > _MAX_BYTES:
                    raise BadDump(str(path), "it is too large")
                data = archive.extractfile(member) if member.isfile() else None
                text = data.read().decode(errors="replace") if data else ""
                yield member.name, text, member.linkname if member.issym() else ""
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise BadDump(str(path), str(error)) from error
