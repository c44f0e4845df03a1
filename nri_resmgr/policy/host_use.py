"""Inputs of host settings: CPU classes, interrupts, isolation; and classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.classes.irq.requests import BalloonCpus, ContainerCpus
from nri_resmgr.classes.isolation.requests import Isolated
from nri_resmgr.values import NO_CPUS, CpuSet


class CpuClassRules(msgspec.Struct, frozen=True):
    """Names of the CPU classes in a policy's settings.

    Attributes:
        names: All classes; empty to leave CPUs unchanged.
        shared: Class of shared CPUs.
        reserved: Class of reserved CPUs; empty for that of shared ones.
        exclusive: Class of exclusive CPUs of containers that ask for none; empty for
            that of shared ones.
    """

    names: tuple[str, ...] = ()
    shared: str = ""
    reserved: str = ""
    exclusive: str = ""


NO_CPU_CLASSES: Final = CpuClassRules()
"""Rules that leave all CPUs unchanged."""


class HostUse(msgspec.Struct, frozen=True):
    """Inputs of host settings in one state of a policy.

    Attributes:
        cpu_classes: CPUs by class. CPUs without a class are left unchanged.
        containers: Interrupt requests of containers with their exclusive CPUs.
        balloons: Interrupt rules of balloon types with the CPUs of balloons.
        isolated: Isolation requests of containers with their exclusive CPUs.
        available: The policy's available CPUs; interrupts are moved among these.
    """

    cpu_classes: Mapping[str, CpuSet] = {}
    containers: tuple[ContainerCpus, ...] = ()
    balloons: tuple[BalloonCpus, ...] = ()
    isolated: tuple[Isolated, ...] = ()
    available: CpuSet = NO_CPUS

    @property
    def is_idle(self) -> bool:
        """True if the host is left unchanged."""
        moves = self.containers or self.balloons
        return not (self.cpu_classes or moves or self.isolated)


NO_HOST_USE: Final = HostUse()
"""The use of a policy that leaves the host unchanged."""


class GivenClasses(msgspec.Struct, frozen=True):
    """Classes that a container's place gives it, unless its annotations name others."""

    rdt: str = ""
    blockio: str = ""


NO_CLASSES: Final = GivenClasses()
"""No classes."""
