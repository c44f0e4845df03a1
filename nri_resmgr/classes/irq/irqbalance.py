"""Bans of irqbalance: CPUs and interrupts that it leaves alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from nri_resmgr.classes.irq.interrupts import Interrupt
from nri_resmgr.classes.irq.placement import InterruptCpus, InterruptPlacement
from nri_resmgr.values import NO_CPUS, CpuSet, InputError

# It reads 500 bytes of a request and ignores the rest.
_LONGEST: Final = 480

_LIST: Final = "IRQBALANCE_BANNED_CPULIST="
_MASK: Final = "IRQBALANCE_BANNED_CPUS="
_BAN: Final = ("-i", "--banirq")


class Bans(msgspec.Struct, frozen=True):
    """CPUs and interrupts that irqbalance leaves alone.

    Attributes:
        cpus: CPUs that get no interrupts from it.
        interrupts: Numbers of interrupts that it does not move.
    """

    cpus: CpuSet = NO_CPUS
    interrupts: frozenset[int] = frozenset()

    def __or__(self, other: Bans) -> Bans:
        return Bans(self.cpus | other.cpus, self.interrupts | other.interrupts)

    def __bool__(self) -> bool:
        return bool(self.cpus or self.interrupts)


def bans_of_process(environ: str, arguments: str, default: CpuSet) -> Bans:
    """Return the bans that an irqbalance was started with.

    *default* are the CPUs of ``isolcpus=`` and ``nohz_full=``, which it bans by itself;
    the texts are ``environ`` and ``cmdline`` of ``/proc/PID``.

    Source:
        irqbalance(1), ENVIRONMENT VARIABLES.
    """
    rows = environ.split("\0")
    masks = (row.removeprefix(_MASK) for row in rows if row.startswith(_MASK))
    lists = (row.removeprefix(_LIST) for row in rows if row.startswith(_LIST))
    mask, listed = next(masks, ""), next(lists, "")
    try:
        # The old name takes precedence; empty counts as unset.
        cpus = CpuSet.from_mask(mask) if mask else CpuSet.parse(listed) or default
    except InputError:
        cpus = default
    return Bans(cpus, frozenset(_banned(arguments.split("\0"))))


def bans_for(placement: InterruptPlacement, irq_cpus: InterruptCpus) -> Bans:
    """Return the bans that irqbalance needs for a placement to last.

    For most interrupts it suffices to ban the CPUs that are spared from all of them;
    irqbalance still balances these. Other interrupts are banned themselves.
    """
    pinned = {
        number
        for number, cpus in placement.cpus.items()
        if not irq_cpus.free - cpus <= placement.spared
    }
    return Bans(placement.spared, placement.claimed & placement.cpus.keys() | pinned)


def misplaced_interrupts(
    placement: InterruptPlacement, present: Iterable[Interrupt], irq_cpus: InterruptCpus
) -> tuple[Interrupt, ...]:
    """Return the interrupts on wrong CPUs, while an irqbalance is running.

    It puts each interrupt that it may move on one CPU of its choice, which is right
    unless that CPU is spared. Banned interrupts must be where they were placed.
    """
    pinned = bans_for(placement, irq_cpus).interrupts
    return tuple(
        one
        for one in present
        if one.number in placement.cpus
        and (
            one.cpus != placement.cpus[one.number]
            if one.number in pinned
            else not one.cpus.isdisjoint(placement.spared)
        )
    )


def requests_for(bans: Bans, own: Bans) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the requests that give an irqbalance its bans.

    Returns:
        The requests, and the numbers of interrupts that do not fit into them: the
        highest.

    Source:
        irqbalance(1), API; as irqbalance 1.9 reads it.
    """
    cpus = "NULL" if bans.cpus == own.cpus or not bans.cpus else str(bans.cpus)
    text, left = "settings ban irqs", []
    for number in sorted(bans.interrupts):
        if number and len(longer := f"{text} {number}") <= _LONGEST:
            text = longer
        else:  # a zero would end the list
            left.append(number)
    if not bans.interrupts - set(left):
        text += " NONE"
    return (f"settings cpus {cpus}", text), tuple(left)


def _banned(words: Sequence[str]) -> Iterator[int]:
    for word, after in zip(words, [*words[1:], ""], strict=True):
        name, _, number = word.partition("=")
        given = number or after if name in _BAN else ""
        if given.isdecimal():
            yield int(given)
