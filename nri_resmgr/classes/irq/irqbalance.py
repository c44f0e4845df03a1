"""What irqbalance leaves alone, and what it has to, to live beside us."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from nri_resmgr.classes.irq.interrupts import Interrupt
from nri_resmgr.classes.irq.placement import InterruptCpus, InterruptPlacement
from nri_resmgr.values import NO_CPUS, CpuSet, InputError

# It reads 500 bytes of a request and drops the rest.
_LONGEST: Final = 480

_LIST: Final = "IRQBALANCE_BANNED_CPULIST="
_MASK: Final = "IRQBALANCE_BANNED_CPUS="
_BAN: Final = ("-i", "--banirq")

ASK: Final = "setup"
"""The request for what it leaves alone now."""


class Bans(msgspec.Struct, frozen=True):
    """What irqbalance leaves alone.

    Attributes:
        cpus: CPUs that it gives no interrupts to.
        interrupts: Numbers of interrupts that it does not move.
    """

    cpus: CpuSet = NO_CPUS
    interrupts: frozenset[int] = frozenset()

    def __or__(self, other: Bans) -> Bans:
        return Bans(self.cpus | other.cpus, self.interrupts | other.interrupts)

    def __bool__(self) -> bool:
        return bool(self.cpus or self.interrupts)


def bans_of_process(environ: str, arguments: str, quiet: CpuSet) -> Bans:
    """Return what an irqbalance was started with.

    Args:
        environ: As in ``/proc/PID/environ``.
        arguments: As in ``/proc/PID/cmdline``.
        quiet: CPUs of ``isolcpus=`` and ``nohz_full=``: its own choice where it is
            told none.

    Source:
        irqbalance(1), ENVIRONMENT VARIABLES.
    """
    rows = environ.split("\0")
    masks = (row.removeprefix(_MASK) for row in rows if row.startswith(_MASK))
    lists = (row.removeprefix(_LIST) for row in rows if row.startswith(_LIST))
    mask, listed = next(masks, ""), next(lists, "")
    try:
        # The old name goes first; an empty one is as none.
        cpus = CpuSet.from_mask(mask) if mask else CpuSet.parse(listed) or quiet
    except InputError:
        cpus = quiet
    return Bans(cpus, frozenset(_banned(arguments.split("\0"))))


def bans_of_reply(text: str) -> Bans | None:
    """Return what an irqbalance leaves alone now; None if it did not say.

    Args:
        text: Its reply, ``SLEEP 10 IRQ 43 LOAD 0 DIFF 0 CLASS 0 BANNED 00000003``.

    Source:
        irqbalance(1), API.
    """
    words = text.replace("\0", "").split()
    pairs = list(pairwise(words))
    try:
        cpus = next(
            CpuSet.from_mask(after) for word, after in pairs if word == "BANNED"
        )
    except (StopIteration, InputError):
        return None
    numbers = (after for word, after in pairs if word == "IRQ")
    return Bans(cpus, frozenset(int(one) for one in numbers if one.isdecimal()))


def bans_for(placement: InterruptPlacement, irq_cpus: InterruptCpus) -> Bans:
    """Return what irqbalance has to leave alone for a placement to last.

    CPUs that are spared by all, besides those that it spares by itself, are enough
    for most interrupts, and it goes on to balance those. The others are ours alone.
    """
    ours = {
        number
        for number, cpus in placement.cpus.items()
        if not irq_cpus.free - cpus <= placement.spared
    }
    return Bans(placement.spared, placement.claimed & placement.cpus.keys() | ours)


def misplaced_interrupts(
    placement: InterruptPlacement, present: Iterable[Interrupt], irq_cpus: InterruptCpus
) -> tuple[Interrupt, ...]:
    """Return the interrupts that are where they must not be, beside an irqbalance.

    It puts each interrupt that it may move on a CPU of its choice, which is as good
    as the set that it was given, unless that CPU is spared. What is ours alone has to
    be as it was placed.

    Args:
        placement: What was placed.
        present: The interrupts as they are now, without any originals.
        irq_cpus: Where they may go.
    """
    ours = bans_for(placement, irq_cpus).interrupts
    return tuple(
        one
        for one in present
        if one.number in placement.cpus
        and (
            one.cpus != placement.cpus[one.number]
            if one.number in ours
            else not one.cpus.isdisjoint(placement.spared)
        )
    )


def requests_for(bans: Bans, own: Bans) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Write the requests that make an irqbalance leave things alone.

    Args:
        bans: All that it shall leave alone.
        own: What it was started with.

    Returns:
        The requests, and numbers of interrupts that do not fit into them, the
        highest ones.

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
