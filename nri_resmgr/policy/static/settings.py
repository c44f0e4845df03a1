"""Settings of the static policy, and the CPUs that these make available."""

from __future__ import annotations

import fnmatch
from functools import lru_cache

import msgspec

from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.memory import nodes_near
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet, NodeSet


class StaticSettings(msgspec.Struct, frozen=True):
    """Settings, checked against the machine that they are for.

    Attributes:
        available: Online CPUs that the policy may use.
        reserved: Some of these, which are never granted exclusively. Not empty.
        reserved_namespaces: Shell patterns of namespaces whose containers run
            on the reserved CPUs.
        pin_cpus: Whether containers are pinned to CPUs.
        pin_memory: Whether containers are pinned to memory nodes.
        prefer_isolated: Whether a container that asks for one CPU gets a free
            isolated one. Other containers never get any.
        on_failure: Handling of a container when too few exclusive CPUs are free.
    """

    available: CpuSet
    reserved: CpuSet
    reserved_namespaces: tuple[str, ...] = ("kube-system",)
    pin_cpus: bool = True
    pin_memory: bool = True
    prefer_isolated: bool = True
    on_failure: OnFailure = OnFailure.REFUSE

    def __post_init__(self) -> None:
        if not self.reserved or not self.reserved <= self.available:
            raise ValueError(f"cannot reserve {self.reserved!r} of {self.available!r}")

    def reserves_for(self, namespace: str) -> bool:
        """Return whether containers of *namespace* run on the reserved CPUs."""
        return _matches_any(namespace, self.reserved_namespaces)


class Supply(msgspec.Struct, frozen=True):
    """The CPUs of a machine by their use.

    Attributes:
        ordinary: CPUs that can be granted, and are shared otherwise.
        isolated: CPUs that can be granted to a container that asks for one CPU. They
            are never shared: the scheduler does not spread tasks over them.
        reserved: CPUs that are never granted.
        shared: The shared pool when nothing is granted.
        shared_mems: Memory nodes of the shared pool. They stay the same while the
            pool shrinks: the kernel would move pages of containers away, and back
            when the pool grows.
        reserved_mems: Memory nodes of the reserved CPUs.
    """

    ordinary: CpuSet
    isolated: CpuSet
    reserved: CpuSet
    shared: CpuSet
    shared_mems: NodeSet
    reserved_mems: NodeSet

    @classmethod
    def of(cls, settings: StaticSettings, machine: Machine) -> Supply:
        """Divide the CPUs of *machine*."""
        isolated = (settings.available & machine.isolated) - settings.reserved
        shared = settings.available - isolated
        return cls(
            ordinary=shared - settings.reserved,
            isolated=isolated,
            reserved=settings.reserved,
            shared=shared,
            shared_mems=nodes_near(shared, machine),
            reserved_mems=nodes_near(settings.reserved, machine),
        )


@lru_cache(maxsize=1024)
def _matches_any(namespace: str, patterns: tuple[str, ...]) -> bool:
    # Called for every container at every decision, with few namespaces.
    return any(fnmatch.fnmatchcase(namespace, pattern) for pattern in patterns)
