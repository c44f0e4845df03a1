"""The host settings that the policy in force requires."""

from __future__ import annotations

from typing import Protocol

import msgspec
from msgspec.structs import replace

from nri_resmgr.app.observers.policy_in_force import PolicyInForce
from nri_resmgr.classes.isolation.requests import Isolated
from nri_resmgr.config.cpu_classes import CpuClassUse
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.topology import Machine


class Wanted(msgspec.Struct, frozen=True):
    """The host settings that the policy in force requires, at one moment.

    Attributes:
        use: CPUs by class, requests about interrupts, and isolated containers.
        classes: The definitions of CPU classes; None for none.
        controllable: Patterns of interrupts that may be moved.
    """

    use: HostUse
    classes: CpuClassUse | None
    controllable: tuple[str, ...]
    machine: Machine


class HostSubject(PolicyInForce, Protocol):
    """The policy in force, and whether partitions are made for it."""

    @property
    def makes_partitions(self) -> bool:
        """True if containers with exclusive CPUs get partitions of the kernel."""


def use_in_force(subject: HostSubject) -> HostUse:
    """Return what the policy wants now; isolation only if it is configured.

    Partitions also switch load balancing off where an annotation asks for it; two
    writers of the same files would undo each other's changes.
    """
    use = subject.policy.host_use(subject.state)
    if use.isolated and not subject.config.isolation:
        return replace(use, isolated=())
    if use.isolated and subject.makes_partitions:
        return replace(use, isolated=tuple(map(_balanced, use.isolated)))
    return use


def _balanced(one: Isolated) -> Isolated:
    return replace(one, request=replace(one.request, unbalanced=False))
