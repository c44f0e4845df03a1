"""What containers and balloon types say about interrupts."""

from __future__ import annotations

import enum

import msgspec

from nri_resmgr.values import CpuSet


class IrqAffinity(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What a container's ``irq-affinity`` annotation says.

    Attributes:
        claim: Patterns of interrupts that its CPUs shall take.
        mask: Patterns of interrupts that its CPUs shall not take.
        claim_first: Whether its mask counts even against those who claim.
    """

    claim: tuple[str, ...] = ()
    mask: tuple[str, ...] = ()
    claim_first: bool = False

    @property
    def patterns(self) -> tuple[str, ...]:
        """All patterns, to be checked."""
        return (*self.claim, *self.mask)


class IrqRequest(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What an annotation asks for; `ClassRequest` has the other two fields."""

    affinity: IrqAffinity
    key: str = ""
    of_container: bool = False


class ContainerCpus(msgspec.Struct, frozen=True):
    """The exclusive CPUs of a container, and its ``irq-affinity``."""

    cpus: CpuSet
    affinity: IrqAffinity


class IrqMode(enum.StrEnum):
    """What the CPUs of a balloon are for interrupts that nobody claims."""

    SINK = "sink"
    ISOLATE = "isolate"


class IrqRule(msgspec.Struct, frozen=True):
    """What a balloon type says about interrupts.

    Attributes:
        claim: Patterns of interrupts that its CPUs shall take.
        mode: Whether its CPUs take all others, or none; None for neither.
    """

    claim: tuple[str, ...] = ()
    mode: IrqMode | None = None


class BalloonCpus(msgspec.Struct, frozen=True):
    """The CPUs of a balloon, and what its type says about interrupts."""

    cpus: CpuSet
    rule: IrqRule
