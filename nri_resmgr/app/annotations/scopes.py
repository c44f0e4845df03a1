"""Splits annotation keys, and selects the one that is effective for a container."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Final

import msgspec

from nri_resmgr.app.annotations.reading import CRI_O, CRI_RM, KUBERNETES, NATIVE
from nri_resmgr.values.annotations import CONTAINER_SCOPE, POD_SCOPE

# Keys that older releases of CRI-RM wrote after the name space, as affinity still is.
DEPRECATED: Final = frozenset(
    ("prefer-isolated-cpus", "prefer-shared-cpus", "memory-type", "cold-start")
)

# The runtimes' names, and ours.
_CLASSES: Final = {"rdt": "rdtclass", "blockio": "blockioclass"}

ISOLATION: Final = frozenset(
    f"{word}.{CRI_O}"
    for word in (
        "cpu-load-balancing",
        "cpu-quota",
        "irq-load-balancing",
        "cpu-c-states",
        "cpu-freq-governor",
        "cpu-shared",
    )
)
"""Keys of CRI-O that are read here; the stem is the whole key."""


class Scope(enum.IntEnum):
    """The scope of an annotation; the narrowest one is effective.

    `OTHER` is that of an annotation for another container, `INVALID` applies to none.
    """

    CONTAINER = 0
    POD = 1
    ALL = 2
    DEPRECATED = 3
    OTHER = 4
    INVALID = 5


class ScopedAnnotation(msgspec.Struct, frozen=True):
    """One annotation, with its key split.

    Attributes:
        stem: The key without name space and scope; with a leading slash where it
            follows the name space.
        scope: The containers that it applies to.
    """

    stem: str
    key: str
    value: str
    scope: Scope


def split_keys(
    annotations: Iterable[tuple[str, str]], container: str
) -> tuple[ScopedAnnotation, ...]:
    """Split the keys of annotations, the native ones first."""
    return tuple(
        found
        for name_space in (NATIVE, CRI_RM, KUBERNETES, CRI_O)
        for key, value in annotations
        if (found := _split(key, value, name_space, container))
    )


def effective(annotations: Iterable[ScopedAnnotation]) -> dict[str, ScopedAnnotation]:
    """Select, for each stem, the annotation of the narrowest scope, then the first."""
    found: dict[str, ScopedAnnotation] = {}
    for one in annotations:
        known = found.get(one.stem)
        if one.scope < Scope.OTHER and (not known or one.scope < known.scope):
            found[one.stem] = one
    return found


def _split(
    key: str, value: str, name_space: str, container: str
) -> ScopedAnnotation | None:
    head, slash, tail = key.partition("/")
    if name_space in _FOREIGN:
        return _FOREIGN[name_space](key, value, container)
    if head == name_space:
        if name_space == CRI_RM and tail in DEPRECATED:
            return ScopedAnnotation(tail, key, value, Scope.DEPRECATED)
        return ScopedAnnotation(f"/{tail}", key, value, Scope.ALL)
    if not head.endswith(f".{name_space}"):
        return None
    stem = head[: -len(name_space) - 1]
    scope = _scope(tail, container) if slash else Scope.ALL
    return ScopedAnnotation(stem, key, value, scope)


def _class(key: str, value: str, container: str) -> ScopedAnnotation | None:
    """Split a key of Kubernetes' name space, of which only classes are read."""
    head, slash, tail = key.partition("/")
    stem = _CLASSES.get(head.removesuffix(f".{KUBERNETES}"))
    if stem is None:
        return None
    scope = _scope(tail, container) if slash else Scope.ALL
    return ScopedAnnotation(stem, key, value, scope)


def _isolation(key: str, value: str, container: str) -> ScopedAnnotation | None:
    """Split a key of CRI-O, whose scope is a container's bare name."""
    head, slash, tail = key.partition("/")
    if head not in ISOLATION:
        return None
    named = Scope.CONTAINER if tail == container else Scope.OTHER
    return ScopedAnnotation(head, key, value, named if slash else Scope.ALL)


def _scope(text: str, container: str) -> Scope:
    if text == POD_SCOPE:
        return Scope.POD
    name = text.removeprefix(CONTAINER_SCOPE)
    if not name or name == text:
        return Scope.INVALID
    return Scope.CONTAINER if name == container else Scope.OTHER


# Name spaces of others: only a few of their keys are read.
_FOREIGN: Final = {KUBERNETES: _class, CRI_O: _isolation}
