"""Groups of results of the replicas of one pod template."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from nri_resmgr.values import CpuSet

_MOST_LETTERS: Final = 24  # of the numbers of replicas in a title


class OfStep(Protocol):
    """A result that a step of a scenario led to.

    Attributes:
        step: The step, counted from 0.
        title: ``namespace/pod/container``, ``namespace/pod``, or another text.
    """

    @property
    def step(self) -> int: ...  # noqa: D102 - above

    @property
    def title(self) -> str: ...  # noqa: D102 - above


ResultT = TypeVar("ResultT", bound=OfStep)


class Group(msgspec.Struct, Generic[ResultT], frozen=True):
    """Equal results of replicas, in order.

    Attributes:
        title: That of the only one, or ``namespace/pod-[0-2,5]/container``.
    """

    title: str
    members: tuple[ResultT, ...]

    @property
    def first(self) -> ResultT:
        """The first of the results."""
        return self.members[0]


def grouped(
    found: Iterable[ResultT], key: Callable[[ResultT], Hashable]
) -> tuple[Group[ResultT], ...]:
    """Group results with equal *key* of replicas of one template.

    Groups are in the order of their first members. Results of different steps are never
    in one: a step has one template.
    """
    groups: dict[Hashable, list[tuple[int, ResultT]]] = {}
    for one in found:
        stem, number, container = _parts(one.title)
        same = one.step, stem, container, key(one)
        groups.setdefault(same, []).append((number, one))
    return tuple(map(_group, groups.values()))


def _group(numbered: list[tuple[int, ResultT]]) -> Group[ResultT]:
    members = tuple(one for _, one in numbered)
    title = members[0].title
    if len(members) > 1:
        stem, _, container = _parts(title)
        numbers = str(CpuSet.from_iterable(number for number, _ in numbered))
        title = f"{stem}-[{_cut(numbers)}]{container}"
        if len(numbers) > _MOST_LETTERS:
            title = f"{title} ({len(members)})"
    return Group(title, members)


def _parts(title: str) -> tuple[str, int, str]:
    """Split a title at the number of the pod; without one it is the stem, with 0.

    >>> _parts("shop/web-12/app"), _parts("shop/web-3"), _parts("shop/web/app-1")
    (('shop/web', 12, '/app'), ('shop/web', 3, ''), ('shop/web/app-1', 0, ''))
    """
    namespace, slash, rest = title.partition("/")
    pod, inner, container = rest.partition("/")
    name, dash, number = pod.rpartition("-")
    if not (slash and dash and number.isascii() and number.isdigit()):
        return title, 0, ""
    return f"{namespace}/{name}", int(number), inner + container


def _cut(numbers: str) -> str:
    if len(numbers) <= _MOST_LETTERS:
        return numbers
    return numbers[:_MOST_LETTERS].rpartition(",")[0] + ",..."
