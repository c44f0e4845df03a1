"""Units of containers get the values of their cgroups, by a real bus."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.running.container import PinStatus
from nri_resmgr.app.running.units import UnitProperties, bus_address
from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.host.systemd_bus import SystemdBus
from nri_resmgr.host.systemd_units import SystemdUnreachable, UnitValues
from nri_resmgr.host.tree import HostTree
from nri_resmgr.policy.events import NO_PIN, Pin
from nri_resmgr.values import CpuSet, NodeSet
from tests.running.node import SHORT, CgroupNode, NodeExtras, cgroup_node
from tests.running.systemd_double import Bus, SystemdDouble, bus_below, systemd_on
from tests.verification.cgroup_trees import MOUNT
from tests.waiting import until

pytestmark = pytest.mark.process


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with bus_below(tmp_path / "host") as started:
        yield started


class Pins:
    """Where the pins of containers have arrived; a `PinDelivery` knows it."""

    def __init__(self) -> None:
        self.statuses: dict[str, PinStatus] = {}
        self.moves_memory = False

    def status_of(self, container: str) -> PinStatus | None:
        return self.statuses.get(container)

    def decide(self, container: str, cpus: str, mems: str = "0") -> None:
        """Have a pin decided that is not in force."""
        before = self.statuses.get(container)
        pin = Pin(CpuSet.parse(cpus), NodeSet.parse(mems))
        in_force = before.in_force if before else None
        self.statuses[container] = PinStatus(pin, in_force, None)

    def write(self, container: str) -> CgroupReference:
        """Have the decided pin in force."""
        pin = self.statuses[container].decided
        self.statuses[container] = PinStatus(pin, pin, None)
        return reference(container)

    def end(self, container: str) -> None:
        """Have a container that has ended, which is noticed with the next decision."""
        self.statuses[container] = PinStatus(NO_PIN, NO_PIN, None)


def reference(container: str) -> CgroupReference:
    return CgroupReference(container, f"kubepods-pod1.slice:cri:{container}")


def make_cgroup(root: Path, container: str) -> None:
    slices = "kubepods.slice/kubepods-pod1.slice"
    folder = root / MOUNT / slices / f"cri-{container}.scope"
    folder.mkdir(parents=True)
    (folder / "cgroup.procs").write_text("1\n")


@asynccontextmanager
async def units_of(bus: Bus, pins: Pins) -> AsyncIterator[UnitProperties]:
    tree = HostTree(str(bus.root))
    units = UnitProperties(tree, bus_address({}, str(bus.root)), SHORT, SHORT)
    running = asyncio.create_task(units.run(pins))
    try:
        yield units
    finally:
        running.cancel()
        await asyncio.wait({running})


async def test_a_shared_container_s_unit_gets_the_values_of_its_cgroup(
    tmp_path: Path, bus: Bus
) -> None:
    async with (
        systemd_on(bus) as systemd,
        cgroup_node(tmp_path, extras=NodeExtras(bus.address)) as node,
    ):
        for name in ("one", "two"):
            await node.run(name, 0.5)
        await node.run("exclusive", 2)
        await until(lambda: has_cpus_of(systemd, node, "one"))
        await until(lambda: has_cpus_of(systemd, node, "two"))
        await node.stop("exclusive")
        await until(lambda: node.cpus("one") == "1-7")
        await until(lambda: has_cpus_of(systemd, node, "one"))

        (during, after) = systemd.values("cri-one.scope")
        assert CpuSet.parse(during["AllowedCPUs"]) < CpuSet.parse(after["AllowedCPUs"])
        assert during["AllowedMemoryNodes"] == "0"
        assert all(is_runtime for _, is_runtime, _ in systemd.calls)
        assert systemd.values("cri-exclusive.scope") == []  # the runtime did
        assert len(systemd.clients) == 1
        assert units_in(node).problem == ""


def units_in(node: CgroupNode) -> UnitProperties:
    assert node.delivery.units is not None
    return node.delivery.units


def has_cpus_of(systemd: SystemdDouble, node: CgroupNode, name: str) -> bool:
    values = systemd.values(f"cri-{name}.scope")
    return bool(values) and values[-1]["AllowedCPUs"] == node.cpus(name)


async def test_a_start_does_not_wait_for_systemd(tmp_path: Path, bus: Bus) -> None:
    async with (
        systemd_on(bus) as systemd,
        cgroup_node(tmp_path, extras=NodeExtras(bus.address)) as node,
    ):
        systemd.answers.clear()
        units = units_in(node)
        await node.run("shared", 0.5)
        await node.run("first", 1)
        await until(lambda: not units.waiting)  # it is on its way
        await node.run("second", 1)
        own = CpuSet.parse(node.cpus("second"))

        assert CpuSet.parse(node.cpus("shared")).isdisjoint(own)
        assert systemd.calls == []
        systemd.answers.set()
        await until(lambda: has_cpus_of(systemd, node, "shared"))


async def test_only_the_last_of_several_values_is_sent(bus: Bus) -> None:
    pins = Pins()
    async with systemd_on(bus) as systemd, units_of(bus, pins) as units:
        systemd.answers.clear()
        pins.decide("first", "0-3")
        units.queue(pins.write("first"))
        await until(lambda: not units.waiting)  # it is on its way
        for cpus in ("0", "0-1", "0-2", "1,9,70"):
            pins.decide("second", cpus)
            units.queue(pins.write("second"))
        systemd.answers.set()
        await until(lambda: len(systemd.calls) == 2)

        assert systemd.values("cri-second.scope") == [
            {"AllowedCPUs": "1,9,70", "AllowedMemoryNodes": "0"}
        ]
        await until(lambda: units.counts.set == 2)


async def test_a_weight_that_was_written_is_set_too(bus: Bus) -> None:
    pins = Pins()
    async with systemd_on(bus) as systemd, units_of(bus, pins) as units:
        pin = Pin(CpuSet.parse("0-3"), NodeSet.parse("0"), 512)
        for name, is_own in (("own", True), ("theirs", False)):
            pins.statuses[name] = PinStatus(pin, pin, None, has_own_weight=is_own)
            units.queue(reference(name))
        await until(lambda: len(systemd.calls) == 2)

        (own,) = systemd.values("cri-own.scope")
        (theirs,) = systemd.values("cri-theirs.scope")
        assert own == theirs | {"CPUWeight": "59"}
        assert theirs == {"AllowedCPUs": "0-3", "AllowedMemoryNodes": "0"}


async def test_a_unit_waits_for_a_weight(bus: Bus) -> None:
    pins = Pins()
    async with systemd_on(bus) as systemd, units_of(bus, pins) as units:
        before = Pin(CpuSet.parse("0-3"), NodeSet.parse("0"), 512)
        after = Pin(before.cpus, before.mems, 1024)
        pins.statuses["one"] = PinStatus(after, before, None, has_own_weight=True)
        units.queue(reference("one"))
        pins.decide("other", "0")
        units.queue(pins.write("other"))
        await until(lambda: len(systemd.calls) == 1)
        pins.statuses["one"] = PinStatus(after, after, None, has_own_weight=True)
        units.queue(reference("one"))
        await until(lambda: len(systemd.calls) == 2)

        (values,) = systemd.values("cri-one.scope")
        assert values["CPUWeight"] == "100"


async def test_the_weight_of_a_running_container_reaches_its_unit(
    tmp_path: Path, bus: Bus
) -> None:
    async with (
        systemd_on(bus) as systemd,
        cgroup_node(tmp_path, extras=NodeExtras(bus.address)) as node,
    ):
        for name in ("same", "other"):
            await node.run(name, 0.5)
        weight = node.path("other") / "cpu.weight"
        wanted = weight.read_text().strip()
        weight.write_text("7\n")
        await node.begin_again()
        await node.run("exclusive", 2)
        await until(lambda: has_cpus_of(systemd, node, "same"))
        await until(lambda: has_cpus_of(systemd, node, "other"))

        assert weight.read_text().strip() == wanted
        assert systemd.values("cri-other.scope")[-1]["CPUWeight"] == wanted
        assert "CPUWeight" not in systemd.values("cri-same.scope")[-1]


async def test_a_value_waits_for_its_cgroup(bus: Bus) -> None:
    """An old value would be written into the cgroup after the new one."""
    pins = Pins()
    async with systemd_on(bus) as systemd, units_of(bus, pins) as units:
        pins.decide("one", "0-3")
        queued = pins.write("one")
        pins.decide("one", "0-1")  # before the first one is sent
        units.queue(queued)
        pins.decide("other", "0")
        units.queue(pins.write("other"))
        await until(lambda: len(systemd.calls) == 1)
        seen = systemd.values("cri-one.scope")
        units.queue(pins.write("one"))
        await until(lambda: len(systemd.calls) == 2)

        assert seen == []
        assert [one["AllowedCPUs"] for one in systemd.values("cri-one.scope")] == [
            "0-1"
        ]


async def test_nothing_is_set_while_memory_moves(bus: Bus) -> None:
    """It would stop systemd for as long as that takes."""
    pins = Pins()
    async with systemd_on(bus) as systemd, units_of(bus, pins) as units:
        pins.moves_memory = True
        pins.decide("one", "0-3")
        units.queue(pins.write("one"))
        await asyncio.sleep(4 * SHORT)
        seen = len(systemd.calls)
        pins.moves_memory = False
        await until(lambda: len(systemd.calls) == 1)

        assert seen == 0


async def test_a_container_that_has_ended_makes_no_noise(bus: Bus) -> None:
    pins = Pins()
    with capture_logs() as lines:
        async with systemd_on(bus) as systemd, units_of(bus, pins) as units:
            systemd.missing.add("cri-unreported.scope")
            for name in ("unreported", "ended", "last"):
                pins.decide(name, "0-3")
                units.queue(pins.write(name))
            pins.end("ended")
            await until(lambda: units.counts.set == 1)

            assert not units.waiting
            assert [name for name, *_ in systemd.calls] == ["cri-last.scope"]
            assert (units.problem, units.counts.rejected) == ("", 0)

    assert lines == []


async def test_a_missing_unit_of_a_running_container_is_logged(bus: Bus) -> None:
    pins = Pins()
    with capture_logs() as lines:
        async with systemd_on(bus) as systemd, units_of(bus, pins) as units:
            for name in ("one", "two"):
                make_cgroup(bus.root, name)
                systemd.missing.add(f"cri-{name}.scope")
                pins.decide(name, "0-3")
                units.queue(pins.write(name))
            await until(lambda: units.counts.rejected == 2)

            assert "cri-two.scope not found" in units.problem

    assert [one["event"] for one in lines] == ["units.rejected"]


async def test_a_bus_that_refuses_is_logged_once(bus: Bus) -> None:
    pins = Pins()
    with capture_logs() as lines:
        async with systemd_on(bus) as systemd, units_of(bus, pins) as units:
            systemd.refuses = True
            for number in range(5):
                pins.decide(str(number), "0-3")
                units.queue(pins.write(str(number)))
            await until(lambda: units.counts.rejected == 5)
            problem = units.problem
            systemd.refuses = False
            units.queue(pins.write("0"))
            await until(lambda: units.counts.set == 1)

            assert "Permission denied" in problem
            assert units.problem == ""

    assert [one["event"] for one in lines] == ["units.rejected"]


async def test_units_are_set_after_a_restart_of_the_bus(bus: Bus) -> None:
    pins = Pins()
    with capture_logs() as lines:
        async with units_of(bus, pins) as units:
            async with systemd_on(bus) as systemd:
                pins.decide("one", "0-3")
                units.queue(pins.write("one"))
                await until(lambda: len(systemd.calls) == 1)
                bus.stop()
            pins.decide("one", "0-1")
            units.queue(pins.write("one"))
            await until(lambda: bool(units.problem))
            bus.start()
            async with systemd_on(bus) as systemd:
                await until(lambda: len(systemd.calls) == 1)
                await until(lambda: not units.problem)

                (values,) = systemd.values("cri-one.scope")
                assert values["AllowedCPUs"] == "0-1"

    assert [one["event"] for one in lines] == ["units.not-set", "units.set-again"]


async def test_values_wait_until_systemd_is_on_the_bus(bus: Bus) -> None:
    pins = Pins()
    async with units_of(bus, pins) as units:
        pins.decide("one", "0-3")
        units.queue(pins.write("one"))
        await until(lambda: bool(units.problem))
        problem = units.problem
        async with systemd_on(bus) as systemd:
            await until(lambda: len(systemd.calls) == 1)

    assert "systemd cannot be reached" in problem


async def test_without_a_bus_containers_that_end_are_forgotten(tmp_path: Path) -> None:
    pins = Pins()
    with capture_logs() as lines:
        async with units_of(Bus(tmp_path), pins) as units:
            for name in ("one", "two"):
                pins.decide(name, "0-3")
                units.queue(pins.write(name))
            await until(lambda: bool(units.problem))
            pins.end("one")
            await until(lambda: units.waiting == {"two"})

            assert units.problem == (
                f"systemd cannot be reached by {tmp_path}/run/dbus/system_bus_socket: "
                "No such file or directory"
            )

    assert [one["event"] for one in lines] == ["units.not-set"]


async def test_a_path_of_the_other_driver_has_no_unit(tmp_path: Path) -> None:
    units = UnitProperties(HostTree(str(tmp_path)), "")
    units.queue(CgroupReference("one", "/kubepods/pod1/one"))

    assert not units.waiting


@pytest.mark.parametrize("answer", [b"", b"no bus\r\n", b"OK 1\r\n", b"\0" * 9000])
async def test_whatever_else_listens_is_reported(tmp_path: Path, answer: bytes) -> None:
    def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        writer.close()

    socket = tmp_path / "socket"
    server = await asyncio.start_unix_server(accept, socket)
    with pytest.raises(SystemdUnreachable, match="/socket: "):
        await SystemdBus.connect(f"unix:path={socket}")
    server.close()


@pytest.mark.parametrize("address", ["", "unix", "tcp:host=there", "unix:path"])
async def test_an_invalid_address_is_reported(address: str) -> None:
    with pytest.raises(SystemdUnreachable, match="not an address"):
        await SystemdBus.connect(address)


async def test_sets_of_any_size_arrive(bus: Bus) -> None:
    sets = [CpuSet.of(0), CpuSet.of(7), CpuSet.of(8), CpuSet.of(0, 9, 8191)]
    async with systemd_on(bus) as systemd:
        connected = await SystemdBus.connect(bus.address)
        for one in sets:
            await connected.set_unit("a.scope", UnitValues(one, NodeSet()))
        connected.close()

        assert systemd.values("a.scope") == [{"AllowedCPUs": str(one)} for one in sets]


_WITHOUT_LIBRARY = """
import asyncio, os, sys
from nri_resmgr.app.running.container import PinStatus
from nri_resmgr.app.running.units import UnitProperties
from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.host.tree import HostTree
from nri_resmgr.policy.events import Pin
from nri_resmgr.values import CpuSet, NodeSet

PIN = Pin(CpuSet.of(1), NodeSet.of(0))

class Pins:
    moves_memory = False

    def status_of(self, container):
        return PinStatus(PIN, PIN, None)

async def until(words):
    while words not in units.problem:
        await asyncio.sleep(0.01)

async def main():
    running = asyncio.create_task(units.run(Pins()))
    await until("install nri-resmgr[systemd]")
    os.unlink(sys.argv[1])
    await until("not an address")
    assert units.waiting == {"one"}

units = UnitProperties(HostTree("/nowhere"), "", 0.01, 0.01)
units.queue(CgroupReference("one", "a.slice:cri:one"))
asyncio.run(asyncio.wait_for(main(), 60))
"""


def test_without_the_library_it_is_tried_again(tmp_path: Path) -> None:
    """As where a file of it cannot be examined once."""
    library = tmp_path / "jeepney.py"
    library.write_text("raise ImportError('not installed')\n")
    subprocess.run(
        [sys.executable, "-Bc", _WITHOUT_LIBRARY, str(library)],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        check=True,
    )
