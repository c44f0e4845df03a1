"""What a container asks for by CRI-O's isolation annotations."""

from __future__ import annotations

import enum

import msgspec

from nri_resmgr.values import CpuSet


class IrqBalancing(enum.StrEnum):
    """Whether a container's CPUs take the interrupts of the machine.

    With `HOUSEKEEPING` its first one does, and the threads of the same core.
    """

    ENABLED = "enable"
    DISABLED = "disable"
    HOUSEKEEPING = "housekeeping"


class Mistake(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """An annotation that means nothing.

    Attributes:
        key: As it is written in the pod.
        why: What is wrong, and what would be accepted.
    """

    key: str
    why: str


class IsolationRequest(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    kw_only=True,
):
    """All that a container asks for; each is about CPUs that it has to itself.

    Attributes:
        unbalanced: Whether the kernel's scheduler moves no threads between them.
        unlimited: Whether it has no CPU quota.
        irq: Whether they take interrupts.
        governor: Their scaling governor; empty to leave it.
        wake_latency: See `CpuClass.wake_latency`; empty to leave it.
        shared: Whether it may run on the shared CPUs besides.
        mistakes: What of it cannot be read.
    """

    unbalanced: bool = False
    unlimited: bool = False
    irq: IrqBalancing = IrqBalancing.ENABLED
    governor: str = ""
    wake_latency: str = ""
    shared: bool = False
    mistakes: tuple[Mistake, ...] = ()

    @property
    def is_about_cgroups(self) -> bool:
        """Whether any of it is set in cgroups."""
        return self.unbalanced or self.unlimited or self.shared


class Isolated(msgspec.Struct, frozen=True):
    """A container with CPUs of its own, and what it asks for them.

    Attributes:
        container: Its id.
        cpus: Those that nobody else runs on.
        request: What it asks for.
        cgroup: Its cgroup as in the OCI spec; empty where untold.
        pid: Of its first process; 0 where untold.
    """

    container: str
    cpus: CpuSet
    request: IsolationRequest
    cgroup: str = ""
    pid: int = 0
