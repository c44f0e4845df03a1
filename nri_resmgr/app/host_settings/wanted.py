"""What the policy in force wants of its host."""

from __future__ import annotations

import msgspec

from nri_resmgr.app.observers.policy_in_force import PolicyInForce
from nri_resmgr.config.cpu_classes import CpuClassUse
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.topology import Machine


class Wanted(msgspec.Struct, frozen=True):
    """What the policy in force wants of its host, at one moment.

    Attributes:
        use: CPUs by class, requests about interrupts, and isolated containers.
        classes: The definitions of CPU classes; None for none.
        controllable: Patterns of interrupts that may be moved.
        machine: The machine.
    """

    use: HostUse
    classes: CpuClassUse | None
    controllable: tuple[str, ...]
    machine: Machine


def use_in_force(subject: PolicyInForce) -> HostUse:
    """Return what the policy wants now; isolation only if it is configured."""
    use = subject.policy.host_use(subject.state)
    if use.isolated and not subject.config.isolation:
        return msgspec.structs.replace(use, isolated=())
    return use
