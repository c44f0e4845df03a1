"""What memory of a node is in use now, as the kernel tells."""

from __future__ import annotations

import re
from typing import Final

from nri_resmgr.host.paths import NODE_ROOT
from nri_resmgr.host.tree import Tree, UnreadableHostFile
from nri_resmgr.values import Bytes

_USED: Final = re.compile(r"MemUsed:\s+(\d{1,18}) kB", re.ASCII)


def used_memory(tree: Tree, node: int) -> Bytes | None:
    """Read MemUsed of a node; None where the kernel does not tell.

    Source:
        Linux, drivers/base/node.c.
    """
    try:
        text = tree.read(f"{NODE_ROOT}/node{node}/meminfo") or ""
    except UnreadableHostFile:
        return None
    match = _USED.search(text)
    return Bytes(int(match[1]) << 10) if match else None
