"""Interrupts of a machine, and patterns that match them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec

from nri_resmgr.values import CpuSet, PolicyError
from nri_resmgr.values.globs import glob_pattern

ALL: Final = ("*",)
"""The default of ``controllableInterrupts``."""

DEFAULT_AFFINITY: Final = "/proc/irq/default_smp_affinity"
"""CPUs of interrupts that appear later, as a mask."""


class Interrupt(msgspec.Struct, frozen=True):
    """A numbered interrupt.

    Attributes:
        name: Its chip and devices, single blanks between the words:
            ``PCI-MSIX-0000:00:04.0 1-edge eth0-rx-0``.
        cpus: The CPUs that may take it, without any change of this daemon.
    """

    number: int
    name: str
    cpus: CpuSet

    @property
    def path(self) -> str:
        """The file with the CPUs that may take it."""
        return f"/proc/irq/{self.number}/smp_affinity_list"

    def __str__(self) -> str:
        return f"interrupt {self.number} ({self.name})"


@dataclass(eq=False)
class DeniedInterrupt(PolicyError):
    """A pattern matches an interrupt that ``controllableInterrupts`` leaves out."""

    pattern: str
    interrupt: Interrupt
    controllable: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.pattern!r} names {self.interrupt}, which controllableInterrupts "
            f"{list(self.controllable)} leaves out; to help, name fewer interrupts, or "
            "allow this one"
        )


def is_named(interrupt: Interrupt, pattern: str) -> bool:
    """Return whether a pattern is the number of an interrupt, or a glob of its name.

    >>> nic = Interrupt(31, "PCI-MSI 1-edge eth0-rx-0", CpuSet.of(0))
    >>> [is_named(nic, pattern) for pattern in ("31", "*eth0*", "eth0*", "3*")]
    [True, True, False, False]
    """
    if pattern == str(interrupt.number):
        return True
    return _compiled(pattern).match(interrupt.name) is not None


def is_any_named(interrupt: Interrupt, patterns: Iterable[str]) -> bool:
    """Return whether any of some patterns matches an interrupt."""
    return any(is_named(interrupt, pattern) for pattern in patterns)


def check_allowed(
    patterns: Iterable[str],
    interrupts: Iterable[Interrupt],
    controllable: tuple[str, ...],
) -> None:
    """Check that patterns match only interrupts that may be moved.

    If none are *controllable*, all may be moved.

    Raises:
        DeniedInterrupt: Another one matches; the lowest of them is reported.
    """
    asked = tuple(patterns)
    for one in interrupts:
        if not _is_controllable(one, controllable):
            for pattern in asked:
                if is_named(one, pattern):
                    raise DeniedInterrupt(pattern, one, controllable)


def controlled(
    interrupts: Iterable[Interrupt], controllable: tuple[str, ...]
) -> tuple[Interrupt, ...]:
    """Return the interrupts that may be moved."""
    return tuple(one for one in interrupts if _is_controllable(one, controllable))


def changed_since(
    before: Iterable[Interrupt], now: Iterable[Interrupt]
) -> tuple[Interrupt, ...]:
    """Return the interrupts that are new, gone, or renamed; a gone one as it was."""
    old = {one.number: one for one in before}
    new = {one.number: one for one in now}
    return tuple(
        one
        for number, one in sorted((old | new).items())
        if number not in old or number not in new or old[number].name != one.name
    )


def _is_controllable(interrupt: Interrupt, controllable: tuple[str, ...]) -> bool:
    return not controllable or is_any_named(interrupt, controllable)


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(glob_pattern(pattern))
