"""Requests of containers and balloon types about interrupts."""

from __future__ import annotations

import enum

import msgspec

from nri_resmgr.values import CpuSet


class IrqAffinity(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The value of an ``irq-affinity`` annotation.

    Attributes:
        claim: Patterns of interrupts for the container's CPUs.
        mask: Patterns of interrupts to keep away from them.
        claim_first: Whether the mask applies even to claimed interrupts.
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
    """The request of an annotation; `ClassRequest` has the other two fields."""

    affinity: IrqAffinity
    key: str = ""
    of_container: bool = False


class ContainerCpus(msgspec.Struct, frozen=True):
    """The exclusive CPUs of a container, and its ``irq-affinity``."""

    cpus: CpuSet
    affinity: IrqAffinity


class IrqMode(enum.StrEnum):
    """Treatment of unclaimed interrupts by the CPUs of a balloon."""

    SINK = "sink"
    ISOLATE = "isolate"


class IrqRule(msgspec.Struct, frozen=True):
    """The options of a balloon type about interrupts.

    Attributes:
        mode: Whether its CPUs take all other interrupts, or none; None for neither.
    """

    claim: tuple[str, ...] = ()
    mode: IrqMode | None = None


class BalloonCpus(msgspec.Struct, frozen=True):
    """The CPUs of a balloon, and the rule of its type."""

    cpus: CpuSet
    rule: IrqRule
