"""Intel Speed Select: CPUs that the hardware favours, by power unit (punit)."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

from nri_resmgr.topology.checks import ContradictoryMachine, check_disjoint
from nri_resmgr.values import NO_CPUS, CpuSet, KiloHertz, StoredValue


class Feature(enum.StrEnum):
    """State of a feature of a punit."""

    UNSUPPORTED = "unsupported"
    OFF = "off"
    ON = "on"


class ClosOrder(enum.StrEnum):
    """The order of classes of service: their weights or their numbers."""

    PROPORTIONAL = "proportional"
    ORDERED = "ordered"


class TurboBucket(StoredValue, frozen=True):
    """Turbo frequency of up to so many cores of high priority, without wide vectors.

    The other cores are limited meanwhile.
    """

    cores: int
    max: KiloHertz


class Clos(StoredValue, frozen=True):
    """A class of service of core power; its index in the punit is its number.

    Attributes:
        weight: 0 to 15; 0 has the highest priority.
        min: Frequency that its cores get before others; None for no minimum.
        max: Highest frequency of its cores; None for no limit.
        cpus: Its CPUs.
    """

    weight: int = 0
    min: KiloHertz | None = None
    max: KiloHertz | None = None
    cpus: CpuSet = NO_CPUS


class Punit(StoredValue, frozen=True):
    """One power control unit: a package, a die of it or a part of one.

    Attributes:
        id: Its number in the package: the power domain of TPMI, else the die.
        level: The performance profile in use.
        levels: Profiles that can be selected, ascending.
        is_locked: Whether the firmware forbids a change of the profile.
        base: Base frequency (SST-BF): some cores have a higher one.
        base_cpus: The CPUs of those cores, whether or not the feature is on.
        turbo: Turbo frequency (SST-TF): some cores have more turbo.
        buckets: Their turbo frequencies, by ascending number of cores.
        power: Core power (SST-CP): classes of service divide the power.
        order: How the classes are ranked.
        clos: The four classes; none where core power is unsupported.

    Source:
        Linux, Documentation/admin-guide/pm/intel-speed-select.rst.
    """

    package: int
    id: int
    cpus: CpuSet
    level: int = 0
    levels: tuple[int, ...] = (0,)
    is_locked: bool = False
    base: Feature = Feature.UNSUPPORTED
    base_cpus: CpuSet = NO_CPUS
    turbo: Feature = Feature.UNSUPPORTED
    buckets: tuple[TurboBucket, ...] = ()
    power: Feature = Feature.UNSUPPORTED
    order: ClosOrder = ClosOrder.PROPORTIONAL
    clos: tuple[Clos, ...] = ()


def check_punits(punits: Sequence[Punit], online: CpuSet) -> None:
    """Check that punits and their classes are disjoint and have only online CPUs.

    Raises:
        ContradictoryMachine: They overlap, have other CPUs or are out of order.
    """
    keys = [(punit.package, punit.id) for punit in punits]
    if sorted(set(keys)) != keys:
        raise ContradictoryMachine("punits repeat or are out of order")
    _check_inside((punit.cpus for punit in punits), online, "punits")
    for punit in punits:
        name = f"punit {punit.package}/{punit.id}"
        classes = (clos.cpus for clos in punit.clos)
        _check_inside(classes, punit.cpus, f"classes of {name}")
        _check_inside([punit.base_cpus], punit.cpus, f"faster cores of {name}")


def _check_inside(parts: Iterable[CpuSet], whole: CpuSet, what: str) -> None:
    if extra := check_disjoint(parts, what) - whole:
        raise ContradictoryMachine(f"CPU {extra} is in {what} and cannot be")
