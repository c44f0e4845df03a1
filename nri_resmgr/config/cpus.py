"""CPUs as configurations name them: a list, all but a list, how many, a cgroup's."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.table import Table
from nri_resmgr.values import BadQuantity, CpuSet, InputError, parse_cpus

_LISTED: Final = "cpuset:"
_ALL_BUT: Final = "exclude-cpuset:"
_CGROUP: Final = "cgroup:"


class Listed(msgspec.Struct, frozen=True):
    """Exactly these CPUs."""

    cpus: CpuSet


class AllBut(msgspec.Struct, frozen=True):
    """All CPUs there are but these."""

    cpus: CpuSet


class Amount(msgspec.Struct, frozen=True):
    """So many CPUs, whichever."""

    count: int


class OfCgroup(msgspec.Struct, frozen=True):
    """The CPUs that a cgroup of the host has, at the time of reading.

    Attributes:
        path: Of its folder: absolute, or below where cgroups are mounted.
    """

    path: str


KnownCpus: TypeAlias = Listed | AllBut | Amount
CpuChoice: TypeAlias = KnownCpus | OfCgroup


def read_cpus(resources: Table) -> CpuChoice | None:
    """Read the ``cpu`` row of ``availableResources`` or ``reservedResources``.

    Returns:
        None where nothing is said. A fraction of a CPU counts as a whole one.

    Raises:
        BadSetting: It is none of ``cpuset:LIST``, ``exclude-cpuset:LIST``,
            ``cgroup:PATH`` and a Kubernetes quantity.
    """
    text = resources.amount("cpu")
    if text is None:
        return None
    try:
        return _parse(text.strip())
    except BadQuantity as error:
        raise BadSetting(resources.at("cpu"), f"{error}{_hint(text)}") from None
    except InputError as error:
        raise BadSetting(resources.at("cpu"), str(error)) from None


def _parse(text: str) -> CpuChoice:
    if text.startswith(_LISTED):
        return Listed(CpuSet.parse(text.removeprefix(_LISTED)))
    if text.startswith(_ALL_BUT):
        return AllBut(CpuSet.parse(text.removeprefix(_ALL_BUT)))
    if text.startswith(_CGROUP) and text != _CGROUP:
        return OfCgroup(text.removeprefix(_CGROUP))
    return Amount(-(-parse_cpus(text) // 1000))


def _hint(text: str) -> str:
    try:
        cpus = CpuSet.parse(text)
    except InputError:
        return f"; expected a quantity, {_LISTED}LIST, {_ALL_BUT}LIST or {_CGROUP}PATH"
    return f"; for a list of CPUs write {_LISTED}{cpus}" if cpus else ""
