"""What the static policy is told to do, and which CPUs that leaves for what."""

from __future__ import annotations

import fnmatch
from functools import lru_cache

import msgspec

from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.memory import nodes_near
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet, NodeSet


class StaticSettings(msgspec.Struct, frozen=True):
    """Settings that fit the machine they were made for.

    Attributes:
        available: Online CPUs that the policy may use.
        reserved: Some of these, never granted to one container alone. Not empty.
        reserved_namespaces: Shell patterns of namespaces whose containers run
            on the reserved CPUs.
        pin_cpus: Whether CPU sets are told to the runtime.
        pin_memory: Whether memory nodes are.
        prefer_isolated: Whether a container that asks for one CPU gets an
            isolated one where one is free. Nobody else ever does.
        on_failure: What to do when exclusive CPUs cannot be had.
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
        """Tell whether containers of *namespace* run on the reserved CPUs."""
        return _matches_any(namespace, self.reserved_namespaces)


class Supply(msgspec.Struct, frozen=True):
    """The CPUs of a machine by what may become of them.

    Attributes:
        ordinary: Can be granted to one container, and are shared otherwise.
        isolated: Can be granted to a container that asks for one CPU. Nobody
            shares them: the scheduler would not spread tasks over them.
        reserved: Never granted.
        shared: What the shared pool has when nothing is granted.
        shared_mems: Memory for the shared pool. It stays the same while the
            pool shrinks: the kernel would move a container's pages at once,
            and back when the pool grows.
        reserved_mems: Memory for the reserved CPUs.
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
    # Asked for every container at every decision, of a few namespaces.
    return any(fnmatch.fnmatchcase(namespace, pattern) for pattern in patterns)
