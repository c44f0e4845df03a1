"""Reads the machine's pressure stall information (PSI)."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from nri_resmgr.host.tree import Tree

RESOURCES: Final = ("cpu", "memory", "io")

_SHARE: Final = r"(\d{{1,3}}\.\d{{1,6}})"
_LINE: Final = rf"{{}} avg10={_SHARE} avg60={_SHARE} avg300={_SHARE}"


class Stall(msgspec.Struct, frozen=True):
    """Per cent of the time in which tasks waited for a resource."""

    ten: float
    sixty: float
    three_hundred: float


class Pressure(msgspec.Struct, frozen=True):
    """Stalls for one resource.

    Attributes:
        some: At least one task waited.
        full: All tasks waited; None where the kernel does not report it.
    """

    some: Stall
    full: Stall | None


def read_pressure(tree: Tree) -> dict[str, Pressure]:
    """Read the pressure by resource, as far as the kernel reports it.

    Raises:
        UnreadableHostFile: A file is there and cannot be read.

    Source:
        Linux, ``Documentation/accounting/psi.rst``.
    """
    found = {}
    for name in RESOURCES:
        text = tree.read(f"/proc/pressure/{name}") or ""
        if some := _stall(text, "some"):
            found[name] = Pressure(some, _stall(text, "full"))
    return found


def _stall(text: str, word: str) -> Stall | None:
    match = re.search(_LINE.format(word), text, re.ASCII)
    return Stall(*map(float, match.groups())) if match else None
