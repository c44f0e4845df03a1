"""CPUs in a configuration: a list, all but a list, a number, or those of a cgroup."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.table import Table
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, BadQuantity, CpuSet, InputError, parse_cpus

AVAILABLE: Final = "$.spec.availableResources.cpu"
RESERVED: Final = "$.spec.reservedResources.cpu"

ALWAYS_RESERVED: Final = "kube-system"
"""The namespace whose containers belong to the node itself."""

_LISTED: Final = "cpuset:"
_ALL_BUT: Final = "exclude-cpuset:"
_CGROUP: Final = "cgroup:"


class Listed(msgspec.Struct, frozen=True):
    """Exactly these CPUs."""

    cpus: CpuSet


class AllBut(msgspec.Struct, frozen=True):
    """All CPUs except these."""

    cpus: CpuSet


class Amount(msgspec.Struct, frozen=True):
    """A number of CPUs, any of them."""

    count: int


class OfCgroup(msgspec.Struct, frozen=True):
    """The CPUs that a cgroup of the host has when the configuration is applied.

    Attributes:
        path: Of its folder: absolute, or relative to the mount point of cgroups.
    """

    path: str


KnownCpus: TypeAlias = Listed | AllBut | Amount
CpuChoice: TypeAlias = KnownCpus | OfCgroup


def read_cpus(
    spec: Table, key: str, default: CpuChoice | None = None
) -> CpuChoice | None:
    """Read the ``cpu`` row of ``availableResources`` or ``reservedResources``.

    Fractions of a CPU are rounded up.

    Raises:
        BadSetting: It is none of ``cpuset:LIST``, ``exclude-cpuset:LIST``,
            ``cgroup:PATH``, ``/PATH`` and a Kubernetes quantity.
    """
    resources = spec.table(key, "cpu")
    text = resources.amount("cpu")
    if text is None:
        return default
    try:
        return _parse(text.strip())
    except BadQuantity as error:
        raise BadSetting(resources.at("cpu"), f"{error}{_hint(text)}") from None
    except InputError as error:
        raise BadSetting(resources.at("cpu"), str(error)) from None


def read_reserved_namespaces(spec: Table, key: str, _: object) -> tuple[str, ...]:
    """Read patterns of reserved namespaces; `ALWAYS_RESERVED` is added."""
    return tuple(dict.fromkeys((ALWAYS_RESERVED, *spec.texts(key))))


def _parse(text: str) -> CpuChoice:
    if text.startswith(_LISTED):
        return Listed(CpuSet.parse(text.removeprefix(_LISTED)))
    if text.startswith(_ALL_BUT):
        return AllBut(CpuSet.parse(text.removeprefix(_ALL_BUT)))
    if text.startswith("/"):  # as CRI-RM writes it
        return OfCgroup(text)
    if text.startswith(_CGROUP) and text != _CGROUP:
        return OfCgroup(text.removeprefix(_CGROUP))
    return Amount(-(-parse_cpus(text) // 1000))  # thousandths, rounded up


def _hint(text: str) -> str:
    try:
        cpus = CpuSet.parse(text)
    except InputError:
        return f"; expected a quantity, {_LISTED}LIST, {_ALL_BUT}LIST or {_CGROUP}PATH"
    return f"; for a list of CPUs write {_LISTED}{cpus}" if cpus else ""


def fit_cpus(
    available: KnownCpus | None, reserved: KnownCpus | None, machine: Machine
) -> tuple[CpuSet | int, CpuSet | int | None]:
    """Check the CPUs of a configuration against *machine*.

    Returns:
        Available and reserved CPUs, each as a set or as a number of CPUs to choose;
        None for the latter where none are configured.

    Raises:
        BadSetting: A CPU does not exist or is offline, or there are too few.
    """
    usable = _available(available, machine)
    if reserved is None:
        return usable, None
    # Which CPUs an amount stands for is chosen later, by the allocator.
    if isinstance(usable, int):
        return usable, _count(reserved, usable)
    match reserved:
        case Amount(count):
            # Isolated CPUs are not counted, except that one may be reserved where
            # there are no others.
            most = len(usable - machine.isolated) or 1
            _check_count(RESERVED, count, most, "available, not isolated")
            return usable, count
        case Listed(cpus):
            chosen = cpus
        case AllBut(cpus):
            chosen = usable - cpus
    _check_reserved(chosen, usable, machine)
    return usable, chosen


def _available(choice: KnownCpus | None, machine: Machine) -> CpuSet | int:
    match choice:
        case None:
            return machine.online
        case Amount(count):
            ordinary = machine.online - machine.isolated
            _check_count(AVAILABLE, count, len(ordinary), "online, not isolated")
            return count
        case Listed(cpus):
            available = cpus & machine.online
            if not available:
                _check_online(AVAILABLE, cpus, machine)
        case AllBut(cpus):
            available = machine.online - cpus
    if not available:
        raise BadSetting(AVAILABLE, f"no CPU is left of {machine.online}")
    return available


def listed_cpus(choice: CpuChoice | None) -> CpuSet:
    """Return the CPUs of a list; none for other choices."""
    return choice.cpus if isinstance(choice, Listed) else NO_CPUS


def without_cpus(choice: CpuChoice | None, gone: CpuSet) -> CpuChoice | None:
    """Leave CPUs out of a list; None where no other one is in it."""
    if not listed_cpus(choice) & gone:
        return choice
    left = listed_cpus(choice) - gone
    return Listed(left) if left else None


def absent_cpus(named: CpuSet, machine: Machine) -> str:
    """Describe the CPUs that a document names and *machine* does not have now.

    They count as soon as they are there.
    """
    if not (absent := named - machine.online):
        return ""
    offline = absent & machine.present
    found = [
        f"this machine has no CPU {absent - offline}" if absent - offline else "",
        f"CPU {offline} is offline" if offline else "",
    ]
    return f"{', '.join(filter(None, found))}; used as soon as it is there"


def _count(choice: KnownCpus, available: int) -> int:
    if not isinstance(choice, Amount):
        raise BadSetting(
            RESERVED, "a list of CPUs needs a list of available CPUs (cpuset:LIST)"
        )
    _check_count(RESERVED, choice.count, available, "available")
    return choice.count


def _check_count(path: str, count: int, most: int, what: str) -> None:
    if not 1 <= count <= most:
        expected = "1 CPU" if most == 1 else f"1 to {most} CPUs"
        raise BadSetting(path, f"expected {expected} ({what}), not {count}")


def _check_online(path: str, cpus: CpuSet, machine: Machine) -> None:
    if missing := cpus - machine.present:
        raise BadSetting(path, f"this machine has no CPU {missing}")
    if offline := cpus - machine.online:
        raise BadSetting(path, f"CPU {offline} is offline")


def _check_reserved(reserved: CpuSet, available: CpuSet, machine: Machine) -> None:
    _check_online(RESERVED, reserved, machine)
    if not reserved:
        raise BadSetting(RESERVED, f"no CPU is left of {available}, expected 1 or more")
    if outside := reserved - available:
        raise BadSetting(RESERVED, f"CPU {outside} is not available ({available})")
    isolated = reserved & machine.isolated
    if isolated and len(reserved) > 1:
        raise BadSetting(
            RESERVED,
            f"CPU {isolated} is isolated: the kernel does not balance load over "
            "isolated CPUs; reserve others, or this one alone",
        )
