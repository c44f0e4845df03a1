"""Lines of cgroup files, and how many of them a runtime can be told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

Files: TypeAlias = Mapping[str, tuple[str, ...]]
"""File name to its lines. Each line needs a write of its own: of files that are about
several devices or resources, the kernel reads one per write."""


class Unified(msgspec.Struct, frozen=True):
    """Files as the runtime can be told, and what is left to write.

    Attributes:
        values: ``linux.resources.unified``.
        rest: What has to be written into the container's cgroup once it is there,
            before its process starts.
    """

    values: Mapping[str, str]
    rest: Files


def as_unified(files: Files, *, by_line: bool) -> Unified:
    """Divide lines into what the runtime writes and what it cannot.

    Args:
        files: Of a cgroup of version 2; others know no unified values.
        by_line: Whether the runtime writes values line by line. runc does since
            1.2. Before, and with crun, a value is one write: of several lines the
            kernel refuses those of ``io.max``, and with them the container, and
            ignores all but the first of weights. Then only the first is told.

    >>> as_unified({"io.max": ("8:0 rbps=1", "8:16 rbps=1")}, by_line=False)
    Unified(values={'io.max': '8:0 rbps=1'}, rest={'io.max': ('8:16 rbps=1',)})
    """
    most = None if by_line else 1
    return Unified(
        {file: "\n".join(lines[:most]) for file, lines in files.items()},
        {} if by_line else {f: ls[1:] for f, ls in files.items() if len(ls) > 1},
    )
