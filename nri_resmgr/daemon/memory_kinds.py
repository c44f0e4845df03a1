"""Memory kinds of nodes from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from nri_resmgr.topology import MemoryKind
from nri_resmgr.values import InputError, NodeSet

MemoryKinds: TypeAlias = Mapping[int, MemoryKind]
"""By node."""


@dataclass(eq=False)
class BadMemoryKind(InputError):
    """A part of ``--memory-kinds`` is invalid."""

    part: str
    why: str

    def __str__(self) -> str:
        return f"--memory-kinds: {self.part!r}: {self.why}"


def read_memory_kinds(text: str) -> MemoryKinds:
    """Read kinds by node: ``2=hbm``, or several separated by blanks: ``2-3=hbm 4=cxl``.

    Raises:
        BadMemoryKind: A part is not nodes, ``=`` and a kind, or names a node again.
    """
    found: dict[int, MemoryKind] = {}
    for part in text.split():
        nodes, equals, kind = part.partition("=")
        if not equals or kind not in list(MemoryKind):
            words = ", ".join(MemoryKind)
            raise BadMemoryKind(part, f"expected NODES=KIND with a kind of {words}")
        try:
            ids = NodeSet.parse(nodes)
        except InputError as error:
            raise BadMemoryKind(part, str(error)) from None
        if not ids or found.keys() & set(ids):
            raise BadMemoryKind(part, "expected nodes, each only once")
        found |= dict.fromkeys(ids, MemoryKind(kind))
    return found
