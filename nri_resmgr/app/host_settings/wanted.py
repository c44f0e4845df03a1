"""What a policy in force wants of its host, at one moment."""

from __future__ import annotations

import msgspec

from nri_resmgr.app.classes.members import ActivePolicy
from nri_resmgr.config.cpu_class_use import CpuClassUse
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.topology import Machine


class Wanted(msgspec.Struct, frozen=True):
    """What a policy in force wants of its host, at one moment.

    Attributes:
        use: CPUs by class, and requests about interrupts.
        classes: What the names of CPU classes mean; None where there are none.
        controllable: Patterns of interrupts that may be moved.
        machine: What all this is about.
    """

    use: HostUse
    classes: CpuClassUse | None
    controllable: tuple[str, ...]
    machine: Machine


def use_in_force(subject: ActivePolicy) -> HostUse:
    """Say what a policy wants now: isolation only where the configuration allows it."""
    use = subject.policy.host_use(subject.state)
    if use.isolated and not subject.config.isolation:
        return msgspec.structs.replace(use, isolated=())
    return use
