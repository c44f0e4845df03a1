"""Intel Speed Select: CPUs that the hardware favours, by power unit (punit)."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import msgspec

from nri_resmgr.topology.checks import ContradictoryMachine
from nri_resmgr.values import NO_CPUS, CpuSet, KiloHertz


class Feature(enum.StrEnum):
    """State of a feature of a punit."""

    UNSUPPORTED = "unsupported"
    OFF = "off"
    ON = "on"


class ClosOrder(enum.StrEnum):
    """What ranks classes of service: their weights or their numbers."""

    PROPORTIONAL = "proportional"
    ORDERED = "ordered"


class TurboBucket(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Turbo frequency of cores of high priority, while the others are limited.

    Attributes:
        cores: Maximum number of cores of high priority.
        max: Their turbo frequency, for code without wide vectors.
    """

    cores: int
    max: KiloHertz


class Clos(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
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


class Punit(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One power control unit: a package, a die of it or a part of one.

    Attributes:
        package: Its package.
        id: Its number in the package: the power domain of TPMI, else the die.
        cpus: Its online CPUs.
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
    _check_disjoint([punit.cpus for punit in punits], online, "punits")
    for punit in punits:
        name = f"punit {punit.package}/{punit.id}"
        _check_disjoint(
            [clos.cpus for clos in punit.clos], punit.cpus, f"classes of {name}"
        )
        _check_disjoint([punit.base_cpus], punit.cpus, f"faster cores of {name}")


def _check_disjoint(parts: Sequence[CpuSet], whole: CpuSet, what: str) -> None:
    seen = NO_CPUS
    for part in parts:
        if both := part & seen:
            raise ContradictoryMachine(f"CPU {both} is in two {what}")
        seen |= part
    if extra := seen - whole:
        raise ContradictoryMachine(f"CPU {extra} is in {what} and cannot be")
