"""Options that select the topology hints of a container."""

from __future__ import annotations

import enum
import re
from typing import Final

import msgspec

from nri_resmgr.topology.hints import Hint
from nri_resmgr.values.globs import glob_pattern


class HintSource(enum.StrEnum):
    """Sources of topology hints; the values are those of annotations."""

    MOUNTS = "mounts"
    DEVICES = "devices"
    POD_RESOURCES = "pod-resources"


ALL_SOURCES: Final = frozenset(HintSource)


class PathMatch(enum.StrEnum):
    """The way in which paths are matched; the values are those of annotations."""

    PREFIX = "prefix"
    GLOB = "glob"


class PathRule(msgspec.Struct, frozen=True):
    """Paths on the host or in sysfs that match a rule.

    In a glob, ``*``, ``?`` and ``[]`` do not match a slash, and ``[^]`` equals
    ``[!]``. A prefix may end inside of a name.
    """

    match: PathMatch
    paths: tuple[str, ...]

    def covers(self, path: str) -> bool:
        """Return whether the rule matches *path*.

        >>> PathRule(PathMatch.GLOB, ("/dev/sd[a-c]",)).covers("/dev/sdb")
        True
        """
        if self.match is PathMatch.PREFIX:
            return path.startswith(self.paths)
        return any(_matches(path, pattern) for pattern in self.paths)


class HintOptions(msgspec.Struct, frozen=True):
    """Selection of a container's hints.

    Those of denied paths of mounts, devices and sysfs are ignored, unless the path is
    allowed. Tests add *given* ones.
    """

    sources: frozenset[HintSource] = ALL_SOURCES
    deny: PathRule | None = None
    allow: PathRule | None = None
    given: tuple[Hint, ...] = ()

    def admits(self, path: str) -> bool:
        """Return whether the hint of *path* is used."""
        if self.deny is None or not self.deny.covers(path):
            return True
        return self.allow is not None and self.allow.covers(path)


ALL_HINTS: Final = HintOptions()
"""Options of a container without annotations."""


def _matches(path: str, pattern: str) -> bool:
    names, patterns = path.split("/"), pattern.split("/")
    return len(names) == len(patterns) and all(
        re.match(glob_pattern(one), name)
        for name, one in zip(names, patterns, strict=True)
    )
