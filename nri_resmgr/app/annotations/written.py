"""Which annotations are ours, and which of them speaks to a container."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Final

import msgspec

from nri_resmgr.app.annotations.read import CRI_O, CRI_RM, KUBERNETES, NATIVE

_POD: Final = "pod"
_CONTAINER: Final = "container."

# Keys that older releases of CRI-RM had behind the name space, as affinity still is.
DEPRECATED: Final = frozenset(
    ("prefer-isolated-cpus", "prefer-shared-cpus", "memory-type", "cold-start")
)


# By the names that runtimes know them, and by ours.
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
"""Keys of CRI-O that have a meaning here; their stems are the whole of them."""


class Scope(enum.IntEnum):
    """How narrow an annotation is; the narrower one counts.

    `ELSEWHERE` speaks to another container, `NOWHERE` to none at all.
    """

    CONTAINER = 0
    POD = 1
    ALL = 2
    DEPRECATED = 3
    ELSEWHERE = 4
    NOWHERE = 5


class Written(msgspec.Struct, frozen=True):
    """An annotation of ours.

    Attributes:
        stem: Its key without name space and scope; with a slash in front where it
            stands behind the name space.
        key: Its key as it is written.
        value: Its value as it is written.
        scope: How narrow it is.
    """

    stem: str
    key: str
    value: str
    scope: Scope


def take_apart(
    annotations: Iterable[tuple[str, str]], container: str
) -> tuple[Written, ...]:
    """Take the keys of annotations apart, the native ones first.

    Args:
        annotations: Of all name spaces.
        container: The name in the pod of the container that is asked about.
    """
    return tuple(
        found
        for name_space in (NATIVE, CRI_RM, KUBERNETES, CRI_O)
        for key, value in annotations
        if (found := _written(key, value, name_space, container))
    )


def effective(annotations: Iterable[Written]) -> dict[str, Written]:
    """Find what speaks to the container: for each key the narrowest, then the first."""
    found: dict[str, Written] = {}
    for one in annotations:
        known = found.get(one.stem)
        if one.scope < Scope.ELSEWHERE and (not known or one.scope < known.scope):
            found[one.stem] = one
    return found


def _written(key: str, value: str, name_space: str, container: str) -> Written | None:
    head, slash, tail = key.partition("/")
    if name_space in _FOREIGN:
        return _FOREIGN[name_space](key, value, container)
    if head == name_space:
        if name_space == CRI_RM and tail in DEPRECATED:
            return Written(tail, key, value, Scope.DEPRECATED)
        return Written(f"/{tail}", key, value, Scope.ALL)
    if not head.endswith(f".{name_space}"):
        return None
    stem = head[: -len(name_space) - 1]
    if not slash:
        return Written(stem, key, value, Scope.ALL)
    return Written(stem, key, value, _scope(tail, container))


def _class(key: str, value: str, container: str) -> Written | None:
    """Read what others put into this name space, of which we know but the classes."""
    head, slash, tail = key.partition("/")
    stem = _CLASSES.get(head.removesuffix(f".{KUBERNETES}"))
    if stem is None:
        return None
    scope = _scope(tail, container) if slash else Scope.ALL
    return Written(stem, key, value, scope)


def _isolation(key: str, value: str, container: str) -> Written | None:
    """Read a key of CRI-O, which names a container without a word before it."""
    head, slash, tail = key.partition("/")
    if head not in ISOLATION:
        return None
    if not slash:
        return Written(head, key, value, Scope.ALL)
    scope = Scope.CONTAINER if tail == container else Scope.ELSEWHERE
    return Written(head, key, value, scope)


def _scope(text: str, container: str) -> Scope:
    if text == _POD:
        return Scope.POD
    name = text.removeprefix(_CONTAINER)
    if not name or name == text:
        return Scope.NOWHERE
    return Scope.CONTAINER if name == container else Scope.ELSEWHERE


# Of which we know a few keys, each without the forms that ours have.
_FOREIGN: Final = {KUBERNETES: _class, CRI_O: _isolation}
