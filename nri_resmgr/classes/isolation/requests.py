"""Requests of containers by CRI-O's isolation annotations."""

from __future__ import annotations

import enum

import msgspec

from nri_resmgr.values import CpuSet


class IrqBalancing(enum.StrEnum):
    """The part that a container's CPUs take in the machine's interrupts.

    With `HOUSEKEEPING` its first CPU does, and the threads of the same core.
    """

    ENABLED = "enable"
    DISABLED = "disable"
    HOUSEKEEPING = "housekeeping"


class Mistake(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """An invalid annotation."""

    key: str
    why: str


class IsolationRequest(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    kw_only=True,
):
    """The request of a container about its exclusive CPUs.

    Attributes:
        unbalanced: Whether the kernel balances no load between them.
        unlimited: Whether it has no CPU quota.
        irq: Whether they take interrupts.
        governor: Their scaling governor; empty for no change.
        wake_latency: See `CpuClass.wake_latency`; empty for no change.
        shared: Whether it may run on the shared CPUs as well.
        mistakes: Its invalid annotations.
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
        """True if any part of it is set in cgroups."""
        return self.unbalanced or self.unlimited or self.shared


class Isolated(msgspec.Struct, frozen=True):
    """A container with exclusive CPUs, and its request about them.

    Attributes:
        cgroup: Its cgroup as in the OCI spec; empty if unknown.
        pid: The id of its first process; 0 if unknown.
    """

    container: str
    cpus: CpuSet
    request: IsolationRequest
    cgroup: str = ""
    pid: int = 0
