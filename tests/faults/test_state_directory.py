"""A state directory that is full, read-only or slow costs memory, never containers."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.testing import Runtime
from tests.faults.daemons import PATIENCE, Daemons, Place, fork_server
from tests.faults.histories import BEGINNINGS, MACHINE
from tests.faults.history import end_pod
from tests.faults.unequal import unequal

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(600)]

POLICY: Final = "topology-aware"
_ENOUGH: Final = 7  # steps of the history, none of which changes the configuration

# Of a write of the slow directory; longer than a runtime waits for anything.
_SLOW: Final = 3.0  # seconds


@pytest.fixture
def daemons() -> Iterator[Daemons]:
    with fork_server() as found:
        yield found


@contextmanager
def small_disk(folder: Path, options: str) -> Iterator[Path]:
    """Mount one for the daemon's state, and remove it in the end."""
    state = folder / "state"
    state.mkdir(mode=0o700)
    mount = ("mount", "-t", "tmpfs", "-o", f"mode=700,{options}", "tmpfs", str(state))
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount")
    try:
        yield state
    finally:
        subprocess.run(("umount", "-l", str(state)), check=True)


def fill(ballast: Path) -> None:
    """Take what is left of a disk."""
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        ballast.chmod(0o600)
        while file.write(bytes(512)):
            continue


def remount(state: Path, options: str) -> None:
    subprocess.run(("mount", "-o", f"remount,{options}", str(state)), check=True)


def new_place(daemons: Daemons, folder: Path, runtime: Runtime) -> Place:
    place = Place(daemons, folder, runtime, MACHINE)
    place.write_config(BEGINNINGS[POLICY][0])
    return place


async def play(place: Place) -> None:
    for step in BEGINNINGS[POLICY][1][:_ENOUGH]:
        await step.act(place)


async def logged(place: Place, event: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while not place.logged(event):
            await place.ending(within=0.02)


async def test_a_full_disk(daemons: Daemons, tmp_path: Path) -> None:
    with small_disk(tmp_path, "size=64k") as state:
        ballast = state / "ballast"
        async with Runtime(tmp_path) as runtime:
            place = new_place(daemons, tmp_path, runtime)
            await place.start()
            fill(ballast)
            await play(place)
            await logged(place, "part.failed")
            before = place.pins(), await place.state()
            # Killed now, it has to find all where it runs.
            await place.kill()
            await place.start()
            again = place.pins()
            # The disk has room again: it is noticed within ten seconds.
            ballast.unlink()
            for step in (end_pod("pod-web"), BEGINNINGS[POLICY][1][0]):
                await step.act(place)
            await place.kill(15)
            await place.start()
            after = place.pins(), await place.state()
            status = await place.kill(15)

    assert again == before[0]
    assert list(unequal(after, before)) == []
    assert (place.statuses, status) == ([-9, 0, 0], 0)


async def test_a_read_only_disk(daemons: Daemons, tmp_path: Path) -> None:
    with small_disk(tmp_path, "size=1m") as state:
        async with Runtime(tmp_path) as runtime:
            place = new_place(daemons, tmp_path, runtime)
            await place.start()
            await play(place)
            await place.rested()
            before = place.pins(), await place.state()
            await place.kill()
            remount(state, "ro")
            await place.start()  # although it cannot lock the directory
            after = place.pins(), await place.state()
            status = await place.kill(15)

    assert place.logged("state.not-kept") == 1
    assert status == 0
    assert list(unequal(after, before)) == []


async def test_a_slow_disk(daemons: Daemons, tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        place = new_place(daemons, tmp_path, runtime)
        place.slow = _SLOW
        await place.start()
        began = time.monotonic()
        await play(place)
        took = time.monotonic() - began
        before = place.pins(), await place.state()
        ending = time.monotonic()
        status = await place.kill(15)
        ended = time.monotonic() - ending
        place.slow = 0.0
        await place.start()
        after = place.pins(), await place.state()
        await place.kill(15)

    assert list(unequal(after, before)) == []
    assert status == 0
    # No request, and no end, waits for a disk.
    assert took < _SLOW
    assert ended < 2 * _SLOW
