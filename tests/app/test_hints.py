"""Which of a container's things give hints, and which hints."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.plugin.hints import ContainerHints
from nri_resmgr.host.tree import BadHostFile, HostTree
from nri_resmgr.stub import Container, Device, LinuxResources, Mount
from nri_resmgr.stub.model import DeviceCgroupRule, LinuxContainer
from nri_resmgr.topology.hint_options import (
    ALL_HINTS,
    HintOptions,
    HintSource,
    PathMatch,
    PathRule,
)
from nri_resmgr.topology.hints import Hint, pod_resource_hints
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, NodeSet
from tests.waiting import until

#  node 0: CPUs 0-3     node 1: CPUs 4-7
MACHINE = parse_spec("1s2n4c1t")

DISK = "/sys/devices/pci0/disk"
GPU = "/sys/devices/pci1/gpu"
NEAR_DISK = Hint(DISK, CpuSet.parse("0-3"), NodeSet.of(0))
NEAR_GPU = Hint(GPU, CpuSet.parse("4-7"), NodeSet.of(1))

FAST_RULE = DeviceCgroupRule(allow=True, type="c", major=195, minor=0, access="rwm")
DATA = Mount("/data", "bind", "/mnt/data/pod", ("rbind", "rw"))
CARD = Device("/dev/gpu0", "c", 195, 0)


@pytest.fixture
def host(tmp_path: Path) -> Path:
    folders = {DISK: "0", GPU: "1"}
    for folder, node in folders.items():
        (tmp_path / folder[1:]).mkdir(parents=True)
        (tmp_path / folder[1:] / "numa_node").write_text(node)
    for link, target in {"block/8:1": DISK, "char/195:0": GPU}.items():
        path = tmp_path / "sys/dev" / link
        path.parent.mkdir(parents=True)
        path.symlink_to(f"../../..{target}")
    table = tmp_path / "proc/1/mountinfo"
    table.parent.mkdir(parents=True)
    table.write_text("1 0 0:30 / / rw - overlay o rw\n2 1 8:1 / /mnt rw - ext4 d rw\n")
    return tmp_path


def container(
    mounts: Iterable[Mount] = (),
    devices: Iterable[Device] = (),
    rules: Iterable[DeviceCgroupRule] = (FAST_RULE,),
) -> Container:
    resources = LinuxResources(devices=tuple(rules))
    linux = LinuxContainer(devices=tuple(devices), resources=resources)
    return Container(id="c", mounts=tuple(mounts), linux=linux)


BOTH = container((DATA,), (CARD,))


@pytest.mark.parametrize(
    ("mount", "hints"),
    [
        pytest.param(DATA, (NEAR_DISK,), id="a volume that is written to counts"),
        pytest.param(
            msgspec.structs.replace(DATA, options=("rbind", "ro")),
            (),
            id="one that is read does not",
        ),
        pytest.param(
            msgspec.structs.replace(DATA, destination="/etc/hosts"),
            (),
            id="a part of every pod does not",
        ),
        pytest.param(
            msgspec.structs.replace(DATA, source="/srv"),
            (),
            id="a file system without a device",
        ),
        pytest.param(
            Mount("/proc", "proc", "proc"), (), id="what is no path of the host"
        ),
    ],
)
def test_mounts_report_where_their_disk_is(
    host: Path, mount: Mount, hints: tuple[Hint, ...]
) -> None:
    found = ContainerHints(HostTree(host)).of(container((mount,)), MACHINE)

    assert found == hints


DENY_ALL = DeviceCgroupRule(access="rwm")
ALLOW_ALL = DeviceCgroupRule(allow=True, type="a", access="rwm")


@pytest.mark.parametrize(
    ("rules", "hints"),
    [
        pytest.param((DENY_ALL, FAST_RULE), (NEAR_GPU,), id="it may write"),
        pytest.param(
            (msgspec.structs.replace(FAST_RULE, minor=None),),
            (NEAR_GPU,),
            id="all minors of it",
        ),
        pytest.param(
            (msgspec.structs.replace(FAST_RULE, access="rm"),), (), id="it may read"
        ),
        pytest.param(
            (FAST_RULE, msgspec.structs.replace(FAST_RULE, allow=False)),
            (),
            id="the last rule counts",
        ),
        pytest.param(
            (msgspec.structs.replace(FAST_RULE, minor=1),),
            (),
            id="another device's rule",
        ),
        pytest.param(
            (msgspec.structs.replace(FAST_RULE, type="b"),),
            (),
            id="another type's rule",
        ),
        pytest.param((ALLOW_ALL,), (), id="a privileged container"),
        pytest.param((), (), id="no rule at all"),
    ],
)
def test_devices_report_where_they_are_if_a_rule_lets_them_be_written(
    host: Path, rules: tuple[DeviceCgroupRule, ...], hints: tuple[Hint, ...]
) -> None:
    found = ContainerHints(HostTree(host)).of(container((), (CARD,), rules), MACHINE)

    assert found == hints


GIVEN = Hint("test", CpuSet.of(1), NodeSet.of(0))


@pytest.mark.parametrize(
    ("options", "hints"),
    [
        pytest.param(ALL_HINTS, (NEAR_DISK, NEAR_GPU), id="all of them"),
        pytest.param(
            HintOptions(frozenset({HintSource.MOUNTS})), (NEAR_DISK,), id="mounts alone"
        ),
        pytest.param(
            HintOptions(frozenset({HintSource.DEVICES})),
            (NEAR_GPU,),
            id="devices alone",
        ),
        pytest.param(HintOptions(frozenset()), (), id="none of them"),
        pytest.param(
            HintOptions(deny=PathRule(PathMatch.PREFIX, ("/mnt", "/dev"))),
            (),
            id="paths that are denied",
        ),
        pytest.param(
            HintOptions(deny=PathRule(PathMatch.PREFIX, (DISK,))),
            (NEAR_GPU,),
            id="a path of sysfs that is denied",
        ),
        pytest.param(
            HintOptions(frozenset(), given=(GIVEN,)), (GIVEN,), id="one handed in"
        ),
    ],
)
def test_annotations_choose_which_hints_count(
    host: Path, options: HintOptions, hints: tuple[Hint, ...]
) -> None:
    assert ContainerHints(HostTree(host)).of(BOTH, MACHINE, options) == hints


def test_what_the_kubelet_reports_counts_where_it_is_asked_for(host: Path) -> None:
    reported = pod_resource_hints({"vendor/nic": NodeSet.of(1)})
    finder = ContainerHints(HostTree(host))
    wanted = HintOptions(frozenset({HintSource.POD_RESOURCES}))
    unwanted = HintOptions(frozenset())

    assert finder.of(BOTH, MACHINE, wanted, pod_resources=reported) == (
        Hint("podresapi:vendor/nic", CpuSet.parse("4-7"), NodeSet.of(1)),
    )
    assert finder.of(BOTH, MACHINE, unwanted, pod_resources=reported) == ()


def test_a_place_that_cannot_be_read_is_a_line_in_the_log(host: Path) -> None:
    (host / f"{DISK[1:]}/numa_node").write_text("nonsense")
    finder = ContainerHints(HostTree(host))
    with capture_logs() as lines:
        found = finder.of(BOTH, MACHINE)

    assert found == (NEAR_GPU,)
    assert [(line["event"], line["path"]) for line in lines] == [
        ("hints.unreadable", "/mnt/data/pod")
    ]


def test_a_place_that_cannot_be_read_is_an_error_where_hints_are_strict(
    host: Path,
) -> None:
    (host / f"{DISK[1:]}/numa_node").write_text("nonsense")

    with pytest.raises(BadHostFile, match="numa_node"):
        ContainerHints(HostTree(host)).of(BOTH, MACHINE, strict=True)


TABLE = "proc/1/mountinfo"


def test_the_table_of_mounts_is_read_when_pods_come(host: Path) -> None:
    text = (host / TABLE).read_text()
    (host / TABLE).unlink()
    finder, asked = ContainerHints(HostTree(host)), container((DATA,))
    found = [finder.of(asked, MACHINE)]
    (host / TABLE).write_text(text)
    found.append(finder.of(asked, MACHINE))
    finder.pods_come()
    found.append(finder.of(asked, MACHINE))

    assert found == [(), (), (NEAR_DISK,)]


def threads() -> set[Path]:
    return set(Path("/proc/self/task").iterdir())


async def test_it_is_read_in_a_thread_once_the_reply_is_out(host: Path) -> None:
    finder, before = ContainerHints(HostTree(host)), threads()
    finder.pods_come()
    await asyncio.sleep(0)
    await until(lambda: threads() <= before)
    shutil.rmtree(host)

    assert finder.of(container((DATA,)), MACHINE) == (NEAR_DISK,)


async def opened(fifo: Path) -> int:
    """Open a FIFO once something reads it."""
    while True:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nothing does yet
            await asyncio.sleep(0.01)


async def test_hints_do_not_wait_for_a_disk_that_does_not_answer(host: Path) -> None:
    slow = host / "sys/devices/pci2/slow"
    slow.mkdir(parents=True)
    os.mkfifo(slow / "numa_node")
    (host / "sys/dev/block/8:2").symlink_to("../../../sys/devices/pci2/slow")
    with (host / TABLE).open("a") as table:
        table.write("3 1 8:2 / /slow rw - ext4 d rw\n")
    finder = ContainerHints(HostTree(host))
    finder.pods_come()
    fifo = await opened(slow / "numa_node")
    # The thread waits for the rest of the file.
    finder.pods_come()
    hints = finder.of(container((DATA,)), MACHINE)
    os.close(fifo)

    assert hints == (NEAR_DISK,)
