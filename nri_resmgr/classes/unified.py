"""Lines of cgroup files, and those that a runtime can write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

Files: TypeAlias = Mapping[str, tuple[str, ...]]
"""File name to its lines. Each line needs a write of its own: of a file with several
devices or resources, the kernel reads one line per write."""


class Unified(msgspec.Struct, frozen=True):
    """Lines divided between the runtime and this daemon.

    Attributes:
        values: ``linux.resources.unified``, for the runtime.
        rest: Lines to write into the container's cgroup before its process starts.
    """

    values: Mapping[str, str]
    rest: Files


def as_unified(files: Files, *, by_line: bool) -> Unified:
    """Divide lines into those that the runtime writes and the others.

    Args:
        files: Files of cgroup v2; v1 has no unified values.
        by_line: Whether the runtime writes values line by line. runc does since
            1.2. Older ones and crun write a value at once: then the kernel refuses
            several lines of ``io.max``, which fails the container, and ignores all
            but the first weight. So only the first line is sent.

    >>> as_unified({"io.max": ("8:0 rbps=1", "8:16 rbps=1")}, by_line=False)
    Unified(values={'io.max': '8:0 rbps=1'}, rest={'io.max': ('8:16 rbps=1',)})
    """
    most = None if by_line else 1
    return Unified(
        {file: "\n".join(lines[:most]) for file, lines in files.items()},
        {} if by_line else {f: ls[1:] for f, ls in files.items() if len(ls) > 1},
    )
