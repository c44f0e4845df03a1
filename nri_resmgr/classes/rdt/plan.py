"""What the groups of a resctrl file system have to hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

# The class whose group is the root of the file system; documents may also write "".
ROOT_CLASS: Final = "system/default"


class Plan(msgspec.Struct, frozen=True):
    """Groups with their schemata, and who may choose them.

    Attributes:
        schemata: By the name of a class, which is that of its folder: lines ``L2``,
            ``L3``, ``MB``, each ended, for one write. Empty text is for a class that
            has nothing to write. The root group is not among them.
        root: The text of the root group. None: it is left as it is.
        no_pod_annotation: Classes that a pod's annotation may not choose, `ROOT_CLASS`
            among them if so.
        no_container_annotation: The same for a container's annotation.
        ignored: Sentences on what was asked for and this machine does not have.
    """

    schemata: Mapping[str, str]
    root: str | None = None
    no_pod_annotation: frozenset[str] = frozenset()
    no_container_annotation: frozenset[str] = frozenset()
    ignored: tuple[str, ...] = ()
