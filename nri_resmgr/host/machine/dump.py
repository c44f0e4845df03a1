"""Stores a machine in a small archive, for bug reports, tests and simulations."""

from __future__ import annotations

import errno
import gzip
import io
import json
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from nri_resmgr.host.bounded import DUMP, BoundedStream, check_size, reason
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.recorded import RecordedTree, RecordingTree
from nri_resmgr.host.tree import Tree
from nri_resmgr.topology import Machine
from nri_resmgr.topology.document import (
    BadMachineDocument,
    from_document,
    to_document,
)
from nri_resmgr.values import InputError

# The model of another format is ignored: the machine is read again from the files.
_FORMAT: Final = 1
_MODEL: Final = "machine.json"
_HOST: Final = "host"


@dataclass(eq=False)
class BadDump(InputError):
    """A file is not a dump of a machine."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: not a dump of a machine: {self.why}"


def write_dump(tree: Tree, to: Path | BinaryIO) -> Machine:
    """Read the machine and write it, with the files it was read from.

    Args:
        tree: The host.
        to: The archive's path, or a stream that is open for writing.

    The archive is a compressed tar: first the model as JSON, then the host's files
    below ``host/``, so that discovery can be repeated elsewhere. Replies of the Speed
    Select driver are in the model only.

    Raises:
        HostError: The machine cannot be read.
        OSError: The archive cannot be written.
    """
    recording = RecordingTree(tree)
    machine = read_machine(recording)
    model = json.dumps({"format": _FORMAT, "machine": to_document(machine)})
    path, stream = (to, None) if isinstance(to, Path) else (None, to)
    with tarfile.open(path, "w:gz", fileobj=stream) as archive:
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
    """Load the machine of a dump; mostly only its first file is read.

    With another format, the machine is read again from the host's files.

    Raises:
        BadDump: The file is not a dump, or damaged.
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
    """Load the host's files of a dump, to repeat discovery.

    Raises:
        BadDump: The file is not a dump, or damaged.
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
    """Yield name, text and link target of each member, without unpacking to disk."""
    try:
        # Unpacked to a bounded stream first: tarfile reads headers of any size.
        with (
            gzip.open(path) as packed,
            tarfile.open(fileobj=BoundedStream(packed, DUMP), mode="r|") as archive,
        ):
            for member in archive:
                check_size(member.size, DUMP)
                data = archive.extractfile(member) if member.isfile() else None
                text = data.read().decode(errors="replace") if data else ""
                yield member.name, text, member.linkname if member.issym() else ""
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadDump(str(path), str(error)) from error
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        raise BadDump(str(path), reason(error)) from None
