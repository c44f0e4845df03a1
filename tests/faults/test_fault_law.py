"""Every point where the daemon asks the system for something fails once.

`make faults` has all errors, several and lasting ones, and pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.faults.cases import Case, chosen
from tests.faults.fault_law import hold_all
from tests.faults.phases import END, PHASES, START
from tests.faults.system_calls import Point, why_not_here

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_not_here()), reason=why_not_here()),
]

NODES: Final = 3  # at a time; they mostly wait

GROUPS: Final = {
    "requests": ("create", "remove", "session"),
    "clients": ("scrape", "control"),
    "background": ("configuration", "cluster", "reload", "idle"),
    "hotplug": ("hotplug",),
    "end": (END,),
}
# Not the likeliest error of their points, and broke the law once.
FOUND: Final = {
    "clients": (
        "scrape:epoll_ctl/new/ENOMEM/0/always",
        "scrape:mmap/memory/ENOMEM/0/always",
    ),
    "background": ("cluster:openat/spool/EMFILE/0/1",),
    START: (
        "start:newfstatat/bus-library/EIO/0/always",
        "start:sendto/notify/ENOBUFS/0/1",
        "start:sendto/notify/ENOBUFS/0/always",
        "start:inotify_add_watch/cgroups/ENOSPC/0/always",
        "start:inotify_init1/new/EMFILE/0/always",
        "start:connect/kubelet/EAGAIN/0/always",
        "start:sendto/kubelet/EPIPE/5/1",
    ),
    "end": (
        "end:newfstatat/control/hang/0/1",
        "end:newfstatat/control/hang/0/1+clone/thread/ENOMEM/0/always",
        "end:read/host/hang/6/1+write/log/hang/0/1",
        "end:write/host/hang/10/1+clone/thread/EAGAIN/0/always",
    ),
}
STARTS: Final = 2  # parts of the cases of the start, each of which takes seconds


def test_each_phase_is_in_a_group() -> None:
    grouped = [phase for phases in GROUPS.values() for phase in phases]
    assert sorted(grouped) == sorted((*PHASES, END))


@pytest.mark.parametrize("group", GROUPS)
async def test_a_fault_passes(tmp_path: Path, group: str) -> None:
    found = map(Case.from_text, FOUND.get(group, ()))
    outcomes = await hold_all(tmp_path, found, phases=GROUPS[group], nodes=NODES)

    assert [f"{one.case}: {one.broken}" for one in outcomes if one.broken] == []
    # Which calls a round of polls makes differs a little from time to time.
    assert sum(one.is_hit for one in outcomes) > len(outcomes) / 2


@pytest.mark.parametrize("part", range(STARTS))
async def test_a_fault_at_the_start_passes(tmp_path: Path, part: int) -> None:
    def choose(phase: str, counts: Counter[Point]) -> Iterator[Case]:
        yield from list(chosen(phase, counts))[part::STARTS]

    found = map(Case.from_text, FOUND[START][part::STARTS])
    outcomes = await hold_all(
        tmp_path, found, phases=(START,), choose=choose, nodes=NODES
    )

    assert [f"{one.case}: {one.broken}" for one in outcomes if one.broken] == []
    assert sum(one.is_hit for one in outcomes) > len(outcomes) / 2
