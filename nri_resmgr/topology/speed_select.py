"""Intel Speed Select: which CPUs the hardware itself favours, punit by punit."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import msgspec

from nri_resmgr.topology.checks import ContradictoryMachine
from nri_resmgr.values import NO_CPUS, CpuSet, KiloHertz


class Feature(enum.StrEnum):
    """Whether a punit can do something, and whether it does."""

    UNSUPPORTED = "unsupported"
    OFF = "off"
    ON = "on"


class ClosOrder(enum.StrEnum):
    """What tells the better class of service: its weight or its number."""

    PROPORTIONAL = "proportional"
    ORDERED = "ordered"


class TurboBucket(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """How fast so many cores may run at once while the others are held back.

    Attributes:
        cores: The most cores of high priority.
        max: Their turbo frequency, for code without wide vectors.
    """

    cores: int
    max: KiloHertz


class Clos(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One class of service of core power; its place is its number.

    Attributes:
        weight: 0 to 15; 0 is served first.
        min: What its cores get before others; None for nothing.
        max: What its cores never exceed; None for no limit.
        cpus: The CPUs that are in it.
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
        levels: Profiles that may be chosen, ascending.
        is_locked: Whether the firmware forbids another profile.
        base: Base frequency (SST-BF): some cores have a higher one.
        base_cpus: The CPUs of those cores, in use or not.
        turbo: Turbo frequency (SST-TF): some cores have more turbo.
        buckets: How much, by ascending number of cores.
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
    """Check that punits and their classes are apart and have only online CPUs.

    Raises:
        ContradictoryMachine: It is not so.
    """
    keys = [(punit.package, punit.id) for punit in punits]
    if sorted(set(keys)) != keys:
        raise ContradictoryMachine("punits repeat or are out of order")
    _apart([punit.cpus for punit in punits], online, "punits")
    for punit in punits:
        name = f"punit {punit.package}/{punit.id}"
        _apart([clos.cpus for clos in punit.clos], punit.cpus, f"classes of {name}")
        _apart([punit.base_cpus], punit.cpus, f"faster cores of {name}")


def _apart(parts: Sequence[CpuSet], whole: CpuSet, what: str) -> None:
    seen = NO_CPUS
    for part in parts:
        if both := part & seen:
            raise ContradictoryMachine(f"CPU {both} is in two {what}")
        seen |= part
    if extra := seen - whole:
        raise ContradictoryMachine(f"CPU {extra} is in {what} and cannot be")
