"""Pods that are placed as a whole: places are reserved until containers are created."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from msgspec.structs import replace

from nri_resmgr.policy.decision import Reason
from nri_resmgr.policy.events import (
    ContainerSpec,
    PodCreated,
    Synchronized,
)
from nri_resmgr.policy.ledger import of_pods_there
from nri_resmgr.policy.overhead_name import OVERHEAD_NAME
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.views import Reservation
from nri_resmgr.values import PolicyError

Announced: TypeAlias = Mapping[str, tuple[str, ...]]
"""The names of all containers of pods that were placed as a whole, by pod."""

NOTHING_ANNOUNCED: Final[Announced] = MappingProxyType({})


class PodPlacement(enum.StrEnum):
    """Placement of all containers of a pod together, if its requests are known.

    `SOFT` places them one by one where the pod does not fit as a whole, `STRICT`
    refuses such a pod.
    """

    OFF = "off"
    SOFT = "soft"
    STRICT = "strict"


def mode_for(event: PodCreated, mode: PodPlacement) -> PodPlacement:
    """Return how a pod is placed where the settings say *mode*.

    The containers of a virtual machine share its CPUs and memory: they are placed
    together by default.
    """
    is_off = mode is PodPlacement.OFF
    return PodPlacement.SOFT if is_off and event.in_vm else mode


@dataclass(eq=False)
class DeviatingContainer(PolicyError):
    """A container asks for other amounts than those that its pod announced."""

    title: str

    def __str__(self) -> str:
        return f"{deviation(self.title)}; correct the annotation of the pod"


@dataclass(eq=False)
class UnannouncedContainer(PolicyError):
    """A container asks for resources that its pod did not announce."""

    title: str
    announced: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.title} asks for resources, and its pod was placed as a whole "
            "without it; add it to the annotation of the pod, which announces "
            f"{', '.join(self.announced)}"
        )


def deviation(title: str) -> str:
    """Say that a container asks for other amounts than its pod announced."""
    return f"{title} asks for other amounts than its pod's annotation says"


def names_announced(event: PodCreated) -> tuple[str, ...]:
    """Return the names of all containers that a pod announces."""
    return tuple(sorted(event.announced.union(one.name for one in event.expected)))


def announced_since(announced: Announced, event: Synchronized) -> Announced:
    """Return what a synchronization leaves: the names of pods that still exist."""
    there = of_pods_there({(pod, ""): one for pod, one in announced.items()}, event)
    return {pod: names for (pod, _), names in there.items()}


def check_announced(spec: ContainerSpec, announced: Announced) -> None:
    """Check that a new container is one that its pod announced, if the pod did.

    One that asks for nothing takes nothing that is reserved: a container for debugging
    can always be added to a pod.

    Raises:
        UnannouncedContainer: It asks for CPU or memory, and is not announced.
    """
    names = announced.get(spec.pod)
    if names is None or spec.name in names:
        return
    if spec.request or spec.memory_request:
        raise UnannouncedContainer(spec.title, names)


def reasons_of_reserved(
    pod: str, pool: str, reservations: Iterable[Reservation]
) -> tuple[Reason, ...]:
    """Return the reasons of a pod that was placed: its own, and those of its places.

    Args:
        pod: Its id.
        pool: The names of the pools that its containers will be in.
        reservations: Those of all pods.
    """
    places = tuple(_of_places(Rule.PLACE_RESERVED, pod, reservations))
    title = places[0].title.rpartition("/")[0] if places else ""
    return (Reason(Rule.POD_PLACED, pod, title, pool=pool), *places)


def reasons_of_returned(
    pod: str, reservations: Iterable[Reservation]
) -> Iterator[Reason]:
    """Yield the reasons of places whose pod is gone."""
    expected = (one for one in reservations if one.spec.name != OVERHEAD_NAME)
    return _of_places(Rule.PLACE_RETURNED, pod, expected)


def reason_of_overhead(
    pod: str, reservations: Iterable[Reservation], detail: str = ""
) -> tuple[Reason, ...]:
    """Return the reason of a pod's overhead; none where it has no place."""
    return tuple(
        replace(_of_place(Rule.POD_OVERHEAD, one), detail=detail)
        for one in reservations
        if (one.spec.pod, one.spec.name) == (pod, OVERHEAD_NAME)
    )


def _of_places(
    rule: Rule, pod: str, reservations: Iterable[Reservation]
) -> Iterator[Reason]:
    for one in reservations:
        if one.spec.pod == pod:
            is_own = one.spec.name == OVERHEAD_NAME
            yield _of_place(Rule.POD_OVERHEAD if is_own else rule, one)


def _of_place(rule: Rule, one: Reservation) -> Reason:
    spec = one.spec
    return Reason(
        rule,
        spec.id,
        spec.title,
        one.cpus,
        mems=one.mems,
        pool=one.pool,
        source=spec.origin,
    )
