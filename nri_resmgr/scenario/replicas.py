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

    @property
    def whole_title(self) -> str:
        """The title with the numbers of all replicas, however many they are."""
        if len(self.members) == 1:
            return self.title
        stem, _, container = _parts(self.first.title)
        return f"{stem}-[{_numbers(self.members)}]{container}"


def grouped(
    found: Iterable[ResultT], key: Callable[[ResultT], Hashable]
) -> tuple[Group[ResultT], ...]:
    """Group results with equal *key* of replicas of one template.

    Groups are in the order of their first members. Results of different steps are never
    in one: a step has one template.
    """
    groups: dict[Hashable, list[ResultT]] = {}
    for one in found:
        stem, _, container = _parts(one.title)
        same = one.step, stem, container, key(one)
        groups.setdefault(same, []).append(one)
    return tuple(map(_group, groups.values()))


def _group(members: list[ResultT]) -> Group[ResultT]:
    title = members[0].title
    if len(members) > 1:
        stem, _, container = _parts(title)
        numbers = _numbers(members)
        title = f"{stem}-[{_cut(numbers)}]{container}"
        if len(numbers) > _MOST_LETTERS:
            title = f"{title} ({len(members)})"
    return Group(title, tuple(members))


def _numbers(members: Iterable[OfStep]) -> str:
    return str(CpuSet.from_iterable(_parts(one.title)[1] for one in members))


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
