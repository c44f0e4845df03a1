"""Which topology hints of a container count."""

from __future__ import annotations

import enum
import re
from typing import Final

import msgspec

from nri_resmgr.topology.hints import Hint
from nri_resmgr.values.globs import glob_pattern


class HintSource(enum.StrEnum):
    """What may tell where a container's things sit; the words of annotations."""

    MOUNTS = "mounts"
    DEVICES = "devices"
    POD_RESOURCES = "pod-resources"


ALL_SOURCES: Final = frozenset(HintSource)


class PathMatch(enum.StrEnum):
    """How a rule's paths are taken; the words of annotations."""

    PREFIX = "prefix"
    GLOB = "glob"


class PathRule(msgspec.Struct, frozen=True):
    """Paths on the host or in sysfs that a rule is about.

    In a glob, ``*``, ``?`` and ``[]`` stand for parts of one name and never for a
    slash, and ``[^]`` is as ``[!]``. A prefix is one of the text, not of whole names.
    """

    match: PathMatch
    paths: tuple[str, ...]

    def covers(self, path: str) -> bool:
        """Tell whether the rule is about *path*.

        >>> PathRule(PathMatch.GLOB, ("/dev/sd[a-c]",)).covers("/dev/sdb")
        True
        """
        if self.match is PathMatch.PREFIX:
            return path.startswith(self.paths)
        return any(_fits(path, pattern) for pattern in self.paths)


class HintOptions(msgspec.Struct, frozen=True):
    """Which hints a container wants.

    Attributes:
        sources: What is asked for hints at all.
        deny: Paths of mounts, devices and sysfs that give none.
        allow: Paths that give some although they are denied.
        given: Hints that a test hands in, besides those that are found.
    """

    sources: frozenset[HintSource] = ALL_SOURCES
    deny: PathRule | None = None
    allow: PathRule | None = None
    given: tuple[Hint, ...] = ()

    def admits(self, path: str) -> bool:
        """Tell whether the hint of *path* counts."""
        if self.deny is None or not self.deny.covers(path):
            return True
        return self.allow is not None and self.allow.covers(path)


ALL_HINTS: Final = HintOptions()
"""Of a container without annotations."""


def _fits(path: str, pattern: str) -> bool:
    names, patterns = path.split("/"), pattern.split("/")
    return len(names) == len(patterns) and all(
        re.match(glob_pattern(one), name)
        for name, one in zip(names, patterns, strict=True)
    )
