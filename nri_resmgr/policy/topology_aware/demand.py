"""Which kind of CPUs a container is to get, and how many of them."""

from __future__ import annotations

import enum
import fnmatch
from functools import lru_cache
from typing import Final

import msgspec

from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.policy.decision import Rule
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.values import MilliCpus, QosClass

_NOTHING = MilliCpus(0)
_CPU = 1000  # thousandths

# From here on CPUs are only mixed or isolated where an annotation says so: a
# workload has to spread its own threads over isolated CPUs.
_SEVERAL = 2 * _CPU


class CpuKind(enum.StrEnum):
    """What a container may be granted.

    `OWN` are whole CPUs, isolated or not, `MIXED` are these and a share of the
    pool's shared CPUs. `PRESERVED` CPUs are not ours to choose.
    """

    RESERVED = "reserved"
    SHARED = "shared"
    OWN = "own"
    MIXED = "mixed"
    PRESERVED = "preserved"


# Looked up once: with enums of Python 3.11 that takes as long as making a list.
_SHARED: Final = CpuKind.SHARED
_GUARANTEED: Final = QosClass.GUARANTEED
_NOT_GUARANTEED: Final = Rule.NOT_GUARANTEED

RESERVED_POOL: Final = "reserved CPUs"
"""The pool of reserved containers, in reasons and in reports of pools."""

AT_ROOT: Final = (CpuKind.RESERVED, CpuKind.PRESERVED)
"""The kinds of CPUs that have but one place."""


class Demand(msgspec.Struct, frozen=True):
    """What is asked of the pools for one container.

    Attributes:
        spec: Who asks.
        kind: The kind of CPUs.
        rule: What made it this kind.
        fraction: Thousandths of shared, or reserved, CPUs.
        count: Whole CPUs to have alone.
        isolated: Whether isolated CPUs are wanted for the whole ones.
        require_isolated: Whether others are worse than a refusal.
        priority: The class that the whole ones should be of.
    """

    spec: ContainerSpec
    kind: CpuKind
    rule: Rule
    fraction: MilliCpus = _NOTHING
    count: int = 0
    isolated: bool = False
    require_isolated: bool = False
    priority: CpuPriority = CpuPriority.ANY

    @property
    def capacity(self) -> int:
        """The thousandths that a pool's shared CPUs lose by it, at least one."""
        return _CPU * self.count + self.fraction or 1


def demand_of(spec: ContainerSpec, settings: TopologyAwareSettings) -> Demand:
    """Tell what to ask of the pools for a container.

    Source:
        nri-plugins, topology-aware, ``pod-preferences.go``: the same order.
    """
    if spec.preferences.preserve_cpus:
        return Demand(spec, CpuKind.PRESERVED, Rule.PRESERVED)
    if rule := _reserved_rule(spec, settings):
        return _part(spec, CpuKind.RESERVED, rule)
    if rule := _shared_rule(spec, settings):
        return _part(spec, _SHARED, rule)
    return _whole(spec, settings)


def is_reserved(namespace: str, settings: TopologyAwareSettings) -> bool:
    """Tell whether containers of *namespace* run on the reserved CPUs."""
    return _matches_any(namespace, settings.reserved_namespaces)


def _reserved_rule(spec: ContainerSpec, settings: TopologyAwareSettings) -> Rule | None:
    if spec.preferences.reserved:
        return Rule.RESERVED_ASKED
    if spec.preferences.reserved is None and is_reserved(spec.namespace, settings):
        return Rule.RESERVED_NAMESPACE
    return None


def _shared_rule(spec: ContainerSpec, settings: TopologyAwareSettings) -> Rule | None:
    asked = spec.preferences.shared
    if spec.qos is not _GUARANTEED:
        return _NOT_GUARANTEED
    if spec.request < _CPU:
        return Rule.NOT_WHOLE_CPUS
    if settings.prefer_shared if asked is None else asked:
        return Rule.SHARED_ASKED
    if asked is None and spec.request >= _SEVERAL and spec.request % _CPU:
        return Rule.NOT_WHOLE_CPUS
    return None


def _part(spec: ContainerSpec, kind: CpuKind, rule: Rule) -> Demand:
    return Demand(spec, kind, rule, spec.request)


def _whole(spec: ContainerSpec, settings: TopologyAwareSettings) -> Demand:
    wish = spec.preferences
    count, fraction = divmod(spec.request, _CPU)
    isolated = wish.require_isolated or bool(wish.isolated)
    if wish.isolated is None and not isolated and spec.request < _SEVERAL:
        isolated = settings.prefer_isolated
    is_mixed = fraction or _shares_beside(spec, settings)
    return Demand(
        spec=spec,
        kind=CpuKind.MIXED if is_mixed else CpuKind.OWN,
        rule=Rule.MIXED_CPUS if is_mixed else Rule.WHOLE_CPUS,
        count=count,
        fraction=MilliCpus(fraction),
        isolated=isolated,
        require_isolated=wish.require_isolated,
        priority=wish.cpu_priority or settings.cpu_priority,
    )


def _shares_beside(spec: ContainerSpec, settings: TopologyAwareSettings) -> bool:
    wish = spec.preferences.isolation
    return settings.shared_beside_own and wish is not None and wish.shared


@lru_cache(maxsize=1024)
def _matches_any(namespace: str, patterns: tuple[str, ...]) -> bool:
    # Asked at every creation, of a few namespaces.
    return any(fnmatch.fnmatchcase(namespace, pattern) for pattern in patterns)
