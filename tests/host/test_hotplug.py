"""CPUs and memory that come and go give a new model, once each."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import attrs
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.machine.hotplug import HotplugWatch, StillChanging
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.host.recorded import RecordedTree
from nri_resmgr.host.tree import HostTree, UnreadableHostFile
from nri_resmgr.topology import Machine, MemoryKind
from nri_resmgr.topology.synthetic import parse_spec

SYSTEM = "/sys/devices/system"
ZONES = "/proc/zoneinfo"

PLAIN = "2s2c memory=2Gi"
# Block by block, as a kernel lists it; "managed" is what a balloon leaves.
ZONE = """\
Node {node}, zone   Normal
  per-node stats
      nr_inactive_anon 7
  pages free     {free}
        spanned  1048576
        present  {present}
        managed  {managed}
  pagesets
    cpu: 0
              count:    {free}
"""


def zones(*present: int, managed: int = 500_000, free: int = 9) -> str:
    return "".join(
        ZONE.format(node=node, present=pages, managed=managed, free=free)
        for node, pages in enumerate(present)
    )


@attrs.define(eq=False)
class Host:
    """A tree whose files change, some of them while they are read.

    Attributes:
        files: What it shows now.
        then: What it shows from the first look at a node on, once.
    """

    files: dict[str, str]
    then: dict[str, str] = attrs.field(factory=dict)
    reads: list[str] = attrs.field(factory=list)

    @classmethod
    def of(cls, spec: str, **more: str) -> Host:
        return cls({**sysfs_files(parse_spec(spec)).files, **more})

    @property
    def root(self) -> str:
        return ""

    def read(self, path: str) -> str | None:
        self.reads.append(path)
        if path.endswith("node0/meminfo"):
            self.files, self.then = self.files | self.then, {}
        return self.files.get(path)

    def names(self, path: str) -> tuple[str, ...]:
        return RecordedTree(self.files).names(path)

    def target(self, path: str) -> str | None:
        return RecordedTree(self.files).target(path)

    def become(self, spec: str) -> Machine:
        self.files = dict(sysfs_files(parse_spec(spec)).files)
        return parse_spec(spec)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(PLAIN, f"{PLAIN} offline=3", id="a CPU goes offline"),
        pytest.param(f"{PLAIN} offline=1", PLAIN, id="a CPU comes online"),
        pytest.param(PLAIN, "2s3c memory=2Gi", id="CPUs are plugged in"),
        pytest.param(PLAIN, f"{PLAIN} cxl=1x4Gi", id="a memory node comes"),
        pytest.param(PLAIN, "2s2c memory=2Gi,0", id="a node's memory goes"),
        pytest.param(
            f"{PLAIN} cxl=1x4Gi", f"{PLAIN} cxl=1x4Gi:movable", id="it becomes movable"
        ),
    ],
)
def test_a_change_gives_the_new_model_once(before: str, after: str) -> None:
    host = Host.of(before)
    watch = HotplugWatch(host)
    quiet = watch.poll()
    machine = host.become(after)

    assert [quiet, shape(watch.poll()), watch.poll()] == [None, shape(machine), None]
    assert watch.unsettled is None


def shape(machine: Machine | None) -> object:
    """Return all but the kinds of memory, which come from links that are not here."""
    assert machine is not None
    nodes = (replace(node, kind=MemoryKind.DRAM) for node in machine.nodes)
    return replace(machine, nodes=tuple(nodes))


@pytest.mark.parametrize(
    ("after", "noticed"),
    [
        pytest.param(zones(524_288, 491_520), True, id="a block goes, its node stays"),
        pytest.param(
            zones(524_288, 524_288, managed=400_000), False, id="a balloon takes some"
        ),
        pytest.param(zones(524_288, 524_288, free=1), False, id="memory is used"),
        pytest.param(
            zones(524_288, 524_288).replace(
                "Node 1, zone   Normal", "Node 1, zone  Movable"
            ),
            True,
            id="a block goes and comes again, movable",
        ),
    ],
)
def test_memory_is_reported_from_the_zones(after: str, *, noticed: bool) -> None:
    host = Host.of(PLAIN, **{ZONES: zones(524_288, 524_288)})
    watch = HotplugWatch(host)
    host.files[ZONES] = after
    host.files[f"{SYSTEM}/node/node1/meminfo"] = "Node 1 MemTotal: 1966080 kB"

    found = watch.poll()
    memory = None if found is None else found.node(1).memory
    assert memory == (1_966_080 << 10 if noticed else None)


def test_without_zones_a_block_that_comes_is_seen() -> None:
    host = Host.of(PLAIN)
    watch = HotplugWatch(host)
    host.files[f"{SYSTEM}/memory/memory9/state"] = "online"

    assert (watch.poll(), watch.poll()) == (parse_spec(PLAIN), None)


def test_a_poll_that_finds_nothing_reads_six_files() -> None:
    host = Host.of(PLAIN, **{ZONES: zones(524_288, 524_288)})
    watch = HotplugWatch(host)
    host.reads.clear()
    watch.poll()

    assert host.reads == [
        f"{SYSTEM}/cpu/online",
        f"{SYSTEM}/cpu/present",
        f"{SYSTEM}/node/online",
        f"{SYSTEM}/node/has_memory",
        f"{SYSTEM}/node/has_normal_memory",
        ZONES,
    ]


def test_files_that_contradict_each_other_are_read_again_later() -> None:
    host = Host.of(f"{PLAIN} offline=3")
    watch = HotplugWatch(host)
    host.files[f"{SYSTEM}/cpu/online"] = "0-3"  # and node 1 lacks CPU 3 still
    with capture_logs() as logs:
        halfway = [(watch.poll(), str(watch.unsettled)) for _ in range(2)]
    machine = host.become(PLAIN)
    why = f"{SYSTEM}/node/node*/cpulist: no CPU 3"

    assert halfway == [(None, why)] * 2
    assert [log for log in logs if log["event"] == "topology.unsettled"] == [
        {"event": "topology.unsettled", "error": why, "log_level": "warning"}
    ]
    assert (watch.poll(), watch.unsettled) == (machine, None)


def test_a_change_during_a_read_is_read_again_later() -> None:
    host = Host.of(PLAIN, **{ZONES: zones(524_288, 524_288)})
    watch = HotplugWatch(host)
    host.files[ZONES] = zones(524_288, 491_520)
    host.then = {ZONES: zones(524_288, 458_752)}
    first = watch.poll()

    assert first is None
    assert isinstance(watch.unsettled, StillChanging)
    assert watch.poll() == parse_spec(PLAIN)


def test_a_change_that_is_undone_before_it_is_read_is_ignored() -> None:
    host = Host.of(f"{PLAIN} offline=3")
    watch = HotplugWatch(host)
    host.files[f"{SYSTEM}/cpu/online"] = "0-3"
    watch.poll()
    host.become(f"{PLAIN} offline=3")

    assert (watch.poll(), watch.unsettled) == (None, None)


def test_a_new_model_has_the_kinds_of_memory_that_the_user_reported() -> None:
    host = Host.of(PLAIN)
    watch = HotplugWatch(host, {2: MemoryKind.CXL})
    host.become(f"{PLAIN} dram=1x4Gi")
    machine = watch.poll()

    assert machine is not None
    assert machine.node(2).kind is MemoryKind.CXL


def test_a_live_host_is_watched_too(tmp_path: Path) -> None:
    write_tree(sysfs_files(parse_spec(PLAIN)), tmp_path)
    watch = HotplugWatch(HostTree(tmp_path))
    shutil.rmtree(tmp_path / "sys")
    write_tree(sysfs_files(parse_spec("1s2c memory=2Gi")), tmp_path / "new")
    (tmp_path / "new/sys").rename(tmp_path / "sys")

    assert (
        watch.poll()
        == read_machine(HostTree(tmp_path))
        == parse_spec("1s2c memory=2Gi")
    )


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Any) -> None:
    write_tree(sysfs_files(parse_spec(PLAIN)), tmp_path)
    watch = HotplugWatch(HostTree(tmp_path))
    (tmp_path / f".{SYSTEM}/cpu/online").unlink()
    (tmp_path / f".{SYSTEM}/cpu/online").mkdir()

    assert watch.poll() is None
    assert isinstance(watch.unsettled, UnreadableHostFile)
    assert str(watch.unsettled) == f"{tmp_path}{SYSTEM}/cpu/online: Is a directory"


def test_this_machine_has_no_hotplug_between_two_looks() -> None:
    watch = HotplugWatch(HostTree())

    assert (watch.poll(), watch.unsettled) == (None, None)


def test_online_cpus_are_looked_at_often_and_all_else_seldom() -> None:
    host = Host.of(PLAIN)
    watch = HotplugWatch(host)
    host.reads.clear()
    assert watch.poll_often() is None
    assert host.reads == [f"{SYSTEM}/cpu/online"]

    machine = host.become(f"{PLAIN} offline=3")
    assert watch.poll_often() == machine

    machine = host.become(f"{PLAIN} offline=3 dram=1x4Gi")
    found = [watch.poll_often() for _ in range(20)]
    assert [one for one in found if one is not None] == [machine]


def test_an_inconsistent_read_is_repeated_at_the_next_poll() -> None:
    host = Host.of(f"{PLAIN} offline=3")
    watch = HotplugWatch(host)
    host.files[f"{SYSTEM}/cpu/online"] = "0-3"  # and node 1 lacks CPU 3 still
    assert watch.poll_often() is None
    machine = host.become(PLAIN)

    assert watch.poll_often() == machine
