"""Clocks that jump affect only the times in output."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

import pytest

from nri_resmgr.testing import Runtime
from tests.faults.daemons import Daemons, Place, fork_server
from tests.faults.histories import BEGINNINGS, MACHINE
from tests.faults.history import (
    burstable,
    end_pod,
    guaranteed,
    place_container,
    reconfigure,
    resize,
    run,
)

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(600)]

JUMPS: Final = 200
_YEAR: Final = 31_557_600.0  # seconds

# Of the time of day, seconds; before 1970 and after 2106, too.
_FAR: Final = (-60 * _YEAR, -_YEAR, -3600.0, -1.0, 0.0, 1.0, 3600.0, _YEAR, 90 * _YEAR)

_FIRST, _ = BEGINNINGS["topology-aware"]
_OTHER: Final = _FIRST.replace("0,16", "15,31")


@pytest.fixture
def daemons() -> Iterator[Daemons]:
    with fork_server() as found:
        yield found


async def test_the_time_of_day_jumps(daemons: Daemons, tmp_path: Path) -> None:
    random = Random(0)  # noqa: S311 - the same jumps each time
    clock, expected, jumps = tmp_path / "clock", list[object](), 0
    steps = (
        run("web", burstable(500)),
        run("db", guaranteed(2000)),
        reconfigure("others", _OTHER),
        resize("db", guaranteed(3000)),
        reconfigure("as before", _FIRST),
        end_pod("pod-db"),
        end_pod("pod-web"),
    )
    clock.write_text("0")
    wrong = []
    async with Runtime(tmp_path) as runtime:
        place = Place(daemons, tmp_path, runtime, MACHINE, clock=clock)
        place.write_config(_FIRST)
        await place.start()
        while jumps < JUMPS:
            for number, step in enumerate(steps):
                before = place.logged("updates.failed")
                await step.act(place)
                state = await place.state()
                if len(expected) < len(steps):
                    expected.append(state)
                wrong += [] if state == expected[number] else [step.title]
                wrong += ["updates"] if place.logged("updates.failed") > before else []
                jump = clock.with_name("jump")
                jump.write_text(f"{random.choice(_FAR)}")
                jump.rename(clock)
                jumps += 1
            if jumps % 5 == 0:  # and a start at another time
                await place.kill()
                await place.start()
        status = await place.kill(15)

    assert (wrong, status) == ([], 0)


def later_clock() -> tuple[str, ...]:
    """Start programs on a machine that seems to be up for ten years longer."""
    seconds = str(int(10 * _YEAR))
    clocks = ("--monotonic", seconds, "--boottime", seconds)
    prefix = ("unshare", "--time", "--fork", "--kill-child", *clocks)
    if subprocess.run((*prefix, "true"), capture_output=True, check=False).returncode:
        pytest.skip("no time namespaces here: only root may, with Linux 5.6")
    return prefix


async def test_another_monotonic_clock_after_each_boot(tmp_path: Path) -> None:
    later, found = later_clock(), []
    async with Runtime(tmp_path) as runtime:
        for number, prefix in enumerate(((), later, ())):
            with fork_server(*prefix) as daemons:
                place = Place(daemons, tmp_path, runtime, MACHINE)
                place.write_config(_FIRST)
                await place.start()
                await place_container(place, f"c{number}", guaranteed(1000))
                found.append(place.pins())
                status = await place.kill(15)

    assert status == 0
    assert found[2].items() > found[1].items() > found[0].items()
    assert len({cpus for cpus, _, _ in found[2].values()}) == 3


async def test_documents_of_any_age(daemons: Daemons, tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        place = Place(daemons, tmp_path, runtime, MACHINE)
        place.write_config(_FIRST)
        await place.start()
        reserved = []
        for text, age in ((_OTHER, -50 * _YEAR), (_FIRST, 70 * _YEAR), (_OTHER, 0.0)):
            before = place.logged("configuration.accepted")
            new = tmp_path / "config.new"
            new.write_text(text)
            stamp = new.stat().st_mtime + age
            os.utime(new, (stamp, stamp))
            new.rename(place.config)
            while place.logged("configuration.accepted") == before:
                await place.ending(within=0.02)
            reserved.append((await place.state())["cpus"]["reserved"])
        await place.kill(15)

    assert reserved == ["15,31", "0,16", "15,31"]
