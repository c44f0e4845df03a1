"""What a picture shows: machines, the holders of their CPUs, pools, notes."""

from __future__ import annotations

import msgspec

from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, CpuSet


class Plan(msgspec.Struct, frozen=True):
    """A machine as a part of a picture.

    Attributes:
        heading: Above it; empty for none. Of several plans, one word each.
        reserved: CPUs for the node's system containers.
        chosen: The CPUs of the pools that were chosen, which get an outline.
    """

    machine: Machine
    heading: str = ""
    reserved: CpuSet = NO_CPUS
    chosen: CpuSet = NO_CPUS


class HeldCpus(msgspec.Struct, frozen=True):
    """The CPUs of a holder on one plan.

    Attributes:
        cpus: All of them.
        exclusive: Those that are exclusive to it.
    """

    cpus: CpuSet = NO_CPUS
    exclusive: CpuSet = NO_CPUS


class Holder(msgspec.Struct, frozen=True):
    """A container, or replicas with equal CPUs, or a claim, with a colour of its own.

    Attributes:
        title: Its name.
        words: What follows the name in the legend.
        held: Its CPUs on each plan of the picture.
        is_aside: Whether the picture is not about it: it is grey, and in no legend.
    """

    title: str
    words: str
    held: tuple[HeldCpus, ...]
    is_aside: bool = False


class ShownPool(msgspec.Struct, frozen=True):
    """A pool that was considered for a container.

    Attributes:
        words: What follows its name.
        details: What a pointer shows besides, such as its scores.
    """

    name: str
    cpus: CpuSet
    words: str = ""
    details: str = ""
    is_chosen: bool = False


class PoolList(msgspec.Struct, frozen=True):
    """The pools that were considered for one container, best first.

    Attributes:
        holder: The place of the container among the holders.
    """

    heading: str
    holder: int
    pools: tuple[ShownPool, ...]


class Note(msgspec.Struct, frozen=True):
    """A line below the legend.

    Attributes:
        details: What a pointer shows besides.
        is_refusal: Whether it is about a refused request.
    """

    words: str
    details: str = ""
    is_refusal: bool = False


class Picture(msgspec.Struct, frozen=True):
    """A picture: one plan, or two that are compared, with the same holders."""

    title: str
    plans: tuple[Plan, ...]
    holders: tuple[Holder, ...] = ()
    pools: tuple[PoolList, ...] = ()
    notes: tuple[Note, ...] = ()
