"""The form of a spool file: a header in YAML comments, then the document's text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import msgspec

from nri_resmgr.values import InputError
from nri_resmgr.values.sha256 import sha256_of

CONFIGURATION: Final = "configuration.yaml"
"""Name of the file with the configuration; its text is what a user would write.

Without the file, the cluster has no document for this node.
"""

ADJUSTMENTS: Final = "adjustments.yaml"
"""Name of the file with all adjustments for this node: a YAML list of the objects.

Each has its own ``metadata``; the kind in the header is ``AdjustmentList``. Without the
file there are none.
"""

CLAIMS: Final = "claims.json"
"""Name of the file with the claims that the daemon asks for: a JSON list.

The kind in the header is ``ResourceClaimList``. Without the file there are none.
"""

LARGEST: Final = 4 << 20
"""Bytes of a file. etcd takes objects of 1.5 MiB; a list of adjustments has a few KiB.
"""

_VERSION: Final = 1
_FIRST: Final = re.compile(rb"# nri-resmgr spool ([0-9]{1,9})\n")
_LINE: Final = re.compile(rb"# ([A-Za-z0-9]{1,32}): ([^\n]{0,1024})\n")
_LAST: Final = "sha256"

# Names of Kubernetes have at most 253 characters. No space at the ends: editors and
# agents might strip it.
_VALUE: Final = re.compile(r"[!-~]([ -~]{0,510}[!-~])?")
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,17}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(eq=False)
class BadSpoolFile(InputError):
    """A spool file is not one, is incomplete, or was changed after it was written."""

    why: str

    def __str__(self) -> str:
        return self.why


@dataclass(eq=False)
class BadSpoolHeader(InputError):
    """A value cannot be in the header of a spool file."""

    field: str
    value: str

    def __str__(self) -> str:
        return (
            f"{self.field}: {self.value[:80]!r}: expected at most 512 characters of "
            "printable ASCII"
        )


class SpoolHeader(msgspec.Struct, frozen=True):
    """The object that a spool file is made of.

    Attributes:
        kind: Of the object; ``AdjustmentList`` for all adjustments.
        name: Its name; empty for adjustments, which have their own.
        namespace: Its namespace.
        uid: Its UID.
        generation: Of the object; 0 for a ConfigMap and adjustments.
        resource_version: Of the object, or of the list; for people only.
        node: The agent's node, to which scopes of adjustments refer.
    """

    kind: str
    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    node: str = ""


class SpoolFile(msgspec.Struct, frozen=True):
    """A spool file as it was read.

    Attributes:
        header: The object that it is made of.
        body: The text of the document.
        digest: SHA-256 of the body in UTF-8, in hexadecimal.
    """

    header: SpoolHeader
    body: str
    digest: str


def encode(header: SpoolHeader, body: str) -> bytes:
    """Return the content of a spool file.

    It has to be written atomically: into another name, synced, and renamed.

    Raises:
        BadSpoolHeader: A value of the header has other characters than printable ASCII,
            or too many.
        BadSpoolFile: The document is too large, or not encodable in UTF-8.
    """
    try:
        content = body.encode()
    except UnicodeEncodeError as error:
        raise BadSpoolFile(
            f"character {error.start} cannot be encoded in UTF-8"
        ) from None
    lines = [f"# nri-resmgr spool {_VERSION}"]
    for name, value in _rows(header):
        if not _VALUE.fullmatch(value):
            raise BadSpoolHeader(name, value)
        lines.append(f"# {name}: {value}")
    lines.append(f"# {_LAST}: {sha256_of(content)}\n")
    whole = "\n".join(lines).encode() + content
    _check_size(whole)
    return whole


def decode(content: bytes) -> SpoolFile:
    """Read the content of a spool file; unknown lines of the header are skipped.

    Raises:
        BadSpoolFile: It is another file, of another version, too large, incomplete, or
            was changed after it was written.
    """
    _check_size(content)
    first = _FIRST.match(content)
    if first is None:
        raise BadSpoolFile("no spool file: its first line is not the one of a header")
    if int(first[1]) != _VERSION:
        raise BadSpoolFile(
            f"has version {int(first[1])} of the spool format, expected {_VERSION}: "
            "agent and daemon are too far apart"
        )
    rows, end = _read_rows(content, first.end())
    digest = rows.pop(_LAST)
    if not _DIGEST.fullmatch(digest):
        raise BadSpoolFile(f"# {_LAST}: expected 64 hexadecimal digits")
    body = content[end:]
    if sha256_of(body) != digest:
        raise BadSpoolFile("cut off or changed: its digest does not match")
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise BadSpoolFile(f"not UTF-8 at byte {end + error.start}") from None
    return SpoolFile(_header(rows), text, digest)


def _check_size(content: bytes) -> None:
    if len(content) > LARGEST:
        raise BadSpoolFile(f"has {len(content)} bytes, expected at most {LARGEST}")


def _rows(header: SpoolHeader) -> tuple[tuple[str, str], ...]:
    rows = {
        "kind": header.kind,
        "name": header.name,
        "namespace": header.namespace,
        "uid": header.uid,
        "generation": str(header.generation or ""),
        "resourceVersion": header.resource_version,
        "node": header.node,
    }
    return tuple(
        (name, value) for name, value in rows.items() if value or name == "kind"
    )


def _read_rows(content: bytes, start: int) -> tuple[dict[str, str], int]:
    """Return the rows of the header with the digest, and where the body begins."""
    rows: dict[str, str] = {}
    while _LAST not in rows:
        line = _LINE.match(content, start)
        if line is None:
            raise BadSpoolFile(f"incomplete header: no line '# {_LAST}: ...' ends it")
        name, value = (one.decode("ascii", "replace") for one in line.groups())
        if not _VALUE.fullmatch(value):
            raise BadSpoolFile(f"# {name}: expected printable ASCII")
        if name in rows:
            raise BadSpoolFile(f"# {name}: given twice")
        rows[name] = value
        start = line.end()
    return rows, start


def _header(rows: dict[str, str]) -> SpoolHeader:
    if "kind" not in rows:
        raise BadSpoolFile("# kind: missing")
    generation = rows.get("generation", "0")
    if not _NUMBER.fullmatch(generation):
        raise BadSpoolFile("# generation: expected a number")
    return SpoolHeader(
        kind=rows["kind"],
        name=rows.get("name", ""),
        namespace=rows.get("namespace", ""),
        uid=rows.get("uid", ""),
        generation=int(generation),
        resource_version=rows.get("resourceVersion", ""),
        node=rows.get("node", ""),
    )
