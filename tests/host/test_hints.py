"""Where devices and paths of the host sit."""

from __future__ import annotations

from nri_resmgr.host.hints import MEMORY, DeviceHints, NodeType, device_hints
from nri_resmgr.host.recorded import RecordedTree
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import CpuSet, NodeSet

NVME = "/sys/devices/pci0000:80/0000:80:01.0"
SDA = "/sys/devices/pci0000:00/0000:00:02.0"
DM = "/sys/devices/virtual/block/dm"
GPU = "/sys/devices/pci0000:40/0000:40:00.0"

TREE = RecordedTree(
    files={
        f"{NVME}/numa_node": "1",
        f"{NVME}/local_cpulist": "4-7",
        f"{SDA}/numa_node": "0",
        f"{GPU}/numa_node": "-1",
        f"{GPU}/local_cpulist": "0-3",
    },
    links={
        "/sys/dev/block/259:0": f"{NVME}/nvme/nvme0/nvme0n1",
        "/sys/dev/block/8:1": f"{SDA}/ata1/block/sda/sda1",
        "/sys/dev/block/9:0": "/sys/devices/virtual/block/md0",
        "/sys/devices/virtual/block/md0/slaves/nvme0n1": f"{NVME}/nvme/nvme0/nvme0n1",
        "/sys/devices/virtual/block/md0/slaves/dm-0": f"{DM}-0",
        f"{DM}-0/slaves/sda1": f"{SDA}/ata1/block/sda/sda1",
        "/sys/dev/block/253:1": f"{DM}-1",
        f"{DM}-1/slaves/dm-1": f"{DM}-1",
        "/sys/dev/char/243:0": "/sys/devices/virtual/vfio/12",
        "/sys/kernel/iommu_groups/12/devices/0000:40:00.0": GPU,
        "/sys/dev/char/1:3": "/sys/devices/virtual/mem/null",
    },
)

NEAR_NVME = Hint(NVME, CpuSet.parse("4-7"), NodeSet.of(1))
NEAR_SDA = Hint(SDA, nodes=NodeSet.of(0))


def test_the_first_folder_above_that_knows_reports() -> None:
    assert device_hints(TREE, NodeType.BLOCK, 259, 0) == (NEAR_NVME,)
    assert device_hints(TREE, NodeType.BLOCK, 8, 1) == (NEAR_SDA,)


def test_stacked_devices_are_where_their_parts_are() -> None:
    assert set(device_hints(TREE, NodeType.BLOCK, 9, 0)) == {NEAR_NVME, NEAR_SDA}


def test_a_stack_without_end_has_one() -> None:
    assert device_hints(TREE, NodeType.BLOCK, 253, 1) == ()


def test_a_vfio_group_is_where_its_devices_are() -> None:
    assert device_hints(TREE, NodeType.CHAR, 243, 0) == (
        Hint(GPU, CpuSet.parse("0-3")),
    )


def test_virtual_and_unknown_devices_give_no_hint() -> None:
    assert device_hints(TREE, NodeType.CHAR, 1, 3) == ()
    assert device_hints(TREE, NodeType.CHAR, 99, 99) == ()


def test_what_a_device_reported_is_remembered_for_a_while() -> None:
    files, clock = {f"{NVME}/numa_node": "1"}, [0.0]
    tree = RecordedTree(files=files, links={"/sys/dev/block/259:0": NVME})
    hints = DeviceHints(tree, lambda: clock[0])

    def ask(when: float) -> tuple[Hint, ...]:
        clock[0] = when
        return hints.of(NodeType.BLOCK, 259, 0)

    first = ask(1.0)
    files[f"{NVME}/numa_node"] = "0"

    assert (first, ask(MEMORY), ask(MEMORY + 0.1)) == (
        (Hint(NVME, nodes=NodeSet.of(1)),),
        (Hint(NVME, nodes=NodeSet.of(1)),),
        (Hint(NVME, nodes=NodeSet.of(0)),),
    )


def test_what_a_device_reports_is_read_ahead() -> None:
    files, clock = {f"{NVME}/numa_node": "1", f"{SDA}/numa_node": "0"}, [0.0]
    links = {"/sys/dev/block/259:0": NVME, "/sys/dev/block/8:1": SDA}
    hints = DeviceHints(RecordedTree(files=files, links=links), lambda: clock[0])

    def nodes(*numbers: int) -> list[NodeSet]:
        found = hints.of(NodeType.BLOCK, *numbers, is_due=False)
        return [one.nodes for one in found]

    # One that a container has had, and one of the table of mounts.
    assert nodes(259, 0) == [NodeSet.of(1)]
    hints.read_ahead([(8, 1)])
    files.update({f"{NVME}/numa_node": "0", f"{SDA}/numa_node": "1"})
    hints.read_ahead([(8, 1)])
    assert (nodes(259, 0), nodes(8, 1)) == ([NodeSet.of(1)], [NodeSet.of(0)])
    clock[0] = MEMORY + 0.1
    assert nodes(259, 0) == [NodeSet.of(1)]
    hints.read_ahead([(8, 1)])
    files.clear()
    assert (nodes(259, 0), nodes(8, 1)) == ([NodeSet.of(0)], [NodeSet.of(1)])
