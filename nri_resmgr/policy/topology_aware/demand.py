"""Demands: the kind and number of CPUs that a container should be granted."""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.matching import is_among
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.values import ONE_CPU, MilliCpus, QosClass

# From here on CPUs are only mixed or isolated on request: the scheduler does not
# balance threads over isolated CPUs, so that the workload has to place them.
_SEVERAL = 2 * ONE_CPU


class CpuKind(enum.StrEnum):
    """The kinds of CPUs that are granted.

    `EXCLUSIVE` are whole CPUs, isolated or not; `MIXED` are these and a share of the
    pool's shared CPUs. `PRESERVED` CPUs are left as they are. `CLAIMED` CPUs are those
    of prepared claims, which have grants of their own.
    """

    RESERVED = "reserved"
    SHARED = "shared"
    EXCLUSIVE = "exclusive"
    MIXED = "mixed"
    PRESERVED = "preserved"
    CLAIMED = "claimed"


# Looked up once: reading an enum member is slow in Python 3.11.
_SHARED: Final = CpuKind.SHARED
_GUARANTEED: Final = QosClass.GUARANTEED
_NOT_GUARANTEED: Final = Rule.NOT_GUARANTEED

RESERVED_POOL: Final = "reserved CPUs"
"""The pool of reserved containers, in reasons and in reports of pools."""

EXTREMES: Final = (CpuPriority.HIGH, CpuPriority.LOW)
"""The priorities that go before the depth of a pool; `NORMAL` only avoids others."""

AT_ROOT: Final = (CpuKind.RESERVED, CpuKind.PRESERVED)
"""The kinds of CPUs that only exist in the root pool."""


class Demand(msgspec.Struct, frozen=True):
    """The CPUs that one container should be granted.

    Attributes:
        rule: The rule that led to this kind.
        fraction: Thousandths of shared, or reserved, CPUs.
        count: Number of exclusive CPUs.
        isolated: Whether exclusive CPUs should be isolated ones.
        require_isolated: Whether to refuse it rather than grant others.
        priority: The preferred priority of exclusive CPUs.
    """

    spec: ContainerSpec
    kind: CpuKind
    rule: Rule
    fraction: MilliCpus = MilliCpus(0)
    count: int = 0
    isolated: bool = False
    require_isolated: bool = False
    priority: CpuPriority = CpuPriority.ANY

    @property
    def capacity(self) -> int:
        """The thousandths of a pool's shared CPUs that it uses, at least one."""
        return ONE_CPU * self.count + self.fraction or 1

    @property
    def asks_priority(self) -> bool:
        """True if the container itself asks for exclusive CPUs of high or low priority.

        By default it may be the settings that do.
        """
        return self.count > 0 and self.spec.preferences.cpu_priority in EXTREMES


def demand_of(spec: ContainerSpec, settings: TopologyAwareSettings) -> Demand:
    """Return the demand of a container.

    Source:
        nri-plugins, topology-aware, ``pod-preferences.go``: the same order.
    """
    if spec.claimed:
        return Demand(spec, CpuKind.CLAIMED, Rule.CLAIMED)
    if spec.preferences.preserve_cpus:
        return Demand(spec, CpuKind.PRESERVED, Rule.PRESERVED)
    if rule := _reserved_rule(spec, settings):
        return Demand(spec, CpuKind.RESERVED, rule, spec.request)
    if rule := _shared_rule(spec, settings):
        return Demand(spec, _SHARED, rule, spec.request)
    return _whole(spec, settings)


def _reserved_rule(spec: ContainerSpec, settings: TopologyAwareSettings) -> Rule | None:
    if spec.preferences.reserved:
        return Rule.RESERVED_ASKED
    patterns = settings.reserved_namespaces
    if spec.preferences.reserved is None and is_among(spec.namespace, patterns):
        return Rule.RESERVED_NAMESPACE
    return None


def _shared_rule(spec: ContainerSpec, settings: TopologyAwareSettings) -> Rule | None:
    asked = spec.preferences.shared
    if spec.qos is not _GUARANTEED:
        return _NOT_GUARANTEED
    if spec.request < ONE_CPU:
        return Rule.NOT_WHOLE_CPUS
    if settings.prefer_shared if asked is None else asked:
        return Rule.SHARED_ASKED
    if asked is None and spec.request >= _SEVERAL and spec.request % ONE_CPU:
        return Rule.NOT_WHOLE_CPUS
    return None


def _whole(spec: ContainerSpec, settings: TopologyAwareSettings) -> Demand:
    preferences = spec.preferences
    count, fraction = divmod(spec.request, ONE_CPU)
    isolated = preferences.require_isolated or bool(preferences.isolated)
    if preferences.isolated is None and not isolated and spec.request < _SEVERAL:
        isolated = settings.prefer_isolated
    shares = preferences.isolation is not None and preferences.isolation.shared
    is_mixed = fraction or (shares and settings.shared_beside_exclusive)
    return Demand(
        spec=spec,
        kind=CpuKind.MIXED if is_mixed else CpuKind.EXCLUSIVE,
        rule=Rule.MIXED_CPUS if is_mixed else Rule.WHOLE_CPUS,
        count=count,
        fraction=MilliCpus(fraction),
        isolated=isolated,
        require_isolated=preferences.require_isolated,
        priority=preferences.cpu_priority or settings.cpu_priority,
    )
