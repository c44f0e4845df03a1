"""The kernel's own files change when CPUs and memory come and go, and we notice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.machine.hotplug import HotplugWatch
from nri_resmgr.host.tree import HostTree
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet
from tests.qemu.layout import NODES

pytestmark = pytest.mark.numa

_SYSTEM = Path("/sys/devices/system")
_CARD = len(NODES) - 1  # The kernel keeps nothing there that cannot move.


@pytest.fixture(scope="module")
def machine() -> Machine:
    return read_machine(HostTree("/"))


@pytest.fixture
def watch() -> HotplugWatch:
    return HotplugWatch(HostTree("/"))


@contextmanager
def switched(switch: Path, off: str, on: str) -> Iterator[None]:
    switch.write_text(off)
    try:
        yield
    finally:
        switch.write_text(on)


def test_a_cpu_that_goes_and_comes_back_is_noticed(
    machine: Machine, watch: HotplugWatch
) -> None:
    with switched(_SYSTEM / "cpu/cpu13/online", "0", "1"):
        without = watch.poll()
    again = watch.poll()

    assert without is not None
    assert again is not None
    assert without.online == machine.online - CpuSet.of(13)
    assert again.online == machine.online


def test_a_block_of_memory_that_goes_and_comes_back_is_noticed(
    machine: Machine, watch: HotplugWatch
) -> None:
    size = int((_SYSTEM / "memory/block_size_bytes").read_text(), 16)
    with one_block_offline():
        without = watch.poll()
    again = watch.poll()

    assert without is not None
    assert again is not None
    assert machine.nodes[_CARD].memory - without.nodes[_CARD].memory == size
    assert again.nodes == machine.nodes


def test_nothing_is_noticed_where_nothing_changed(watch: HotplugWatch) -> None:
    assert watch.poll() is None


@contextmanager
def one_block_offline() -> Iterator[None]:
    """Take the first block of the CXL card's memory that can be spared."""
    for block in sorted((_SYSTEM / f"node/node{_CARD}").glob("memory[0-9]*")):
        with suppress(OSError):  # EBUSY: something in it cannot move
            (block / "state").write_text("offline")
            break
    else:
        raise LookupError("no block of memory could be taken offline")
    try:
        yield
    finally:
        (block / "state").write_text("online")
