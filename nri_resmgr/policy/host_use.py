"""What a policy wants besides pinning: classes, and interrupts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.classes.irq.requests import BalloonCpus, ContainerCpus
from nri_resmgr.classes.isolation.requests import Isolated
from nri_resmgr.values import NO_CPUS, CpuSet


class CpuClassRules(msgspec.Struct, frozen=True):
    """The part of the settings that is about CPU classes; names only.

    Attributes:
        names: All classes; empty where CPUs are left as they are.
        shared: Of CPUs that nobody has to himself.
        reserved: Of the reserved CPUs; empty for as the shared ones.
        exclusive: Of CPUs of containers that ask for no class; empty for as the
            shared ones.
    """

    names: tuple[str, ...] = ()
    shared: str = ""
    reserved: str = ""
    exclusive: str = ""


NO_CPU_CLASSES: Final = CpuClassRules()
"""Of who leaves the CPUs as they are."""


class HostUse(msgspec.Struct, frozen=True):
    """What the host's own settings are to follow, now.

    Attributes:
        cpu_classes: CPUs by the class that they are in. A CPU that is in none is left
            as it is.
        containers: CPUs that containers have to themselves, with what these say about
            interrupts.
        balloons: CPUs of balloons, with what their types say; empty where no type
            says anything.
        isolated: Containers that ask to be isolated, and CPUs that they have to
            themselves.
        available: The CPUs that the policy works with; interrupts are moved among
            these.
    """

    cpu_classes: Mapping[str, CpuSet] = {}
    containers: tuple[ContainerCpus, ...] = ()
    balloons: tuple[BalloonCpus, ...] = ()
    isolated: tuple[Isolated, ...] = ()
    available: CpuSet = NO_CPUS

    @property
    def is_idle(self) -> bool:
        """Whether the host is to be left as it is."""
        moves = self.containers or self.balloons
        return not (self.cpu_classes or moves or self.isolated)


NO_HOST_USE: Final = HostUse()
"""Of a policy that leaves the host as it is."""


class GivenClasses(msgspec.Struct, frozen=True):
    """Classes that a container has by where it is, unless its annotations say others.

    Attributes:
        rdt: Of cache and memory bandwidth; empty for none.
        blockio: Of block I/O; empty for none.
    """

    rdt: str = ""
    blockio: str = ""


NO_CLASSES: Final = GivenClasses()
"""Of policies whose places have none."""
