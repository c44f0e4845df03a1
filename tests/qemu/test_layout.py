from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from tests.qemu.kernel import compressed_kernel
from tests.qemu.layout import NODES, qemu_arguments


def test_nodes_share_out_the_16_cpus() -> None:
    assert [cpu for node in NODES for cpu in node.cpus] == list(range(16))


def test_distances_are_a_symmetric_table_with_10_to_oneself() -> None:
    table = [node.distances for node in NODES]

    assert [tuple(column) for column in zip(*table, strict=True)] == table
    assert [row[number] for number, row in enumerate(table)] == [10] * 5


def test_a_node_without_cpus_is_reported_without_cpus() -> None:
    nodes = [word for word in qemu_arguments() if word.startswith("node,")]

    assert nodes == [
        "node,nodeid=0,memdev=ram0,cpus=0-3",
        "node,nodeid=1,memdev=ram1,cpus=4-7",
        "node,nodeid=2,memdev=ram2,cpus=8-11",
        "node,nodeid=3,memdev=ram3,cpus=12-15",
        "node,nodeid=4,memdev=ram4,initiator=0",
    ]


@given(st.binary(min_size=1), st.integers(1, 40), st.integers(0, 1000))
def test_kernel_is_cut_out_to_the_byte(elf: bytes, sectors: int, gap: int) -> None:
    setup = bytearray(b"\xff" * ((sectors + 1) * 512))
    setup[0x1F1] = sectors
    setup[0x248:0x250] = struct.pack("<II", gap, len(elf) + 4)
    bzimage = bytes(setup) + b"\xff" * gap + elf + b"SIZE" + b"\xff" * 64

    assert compressed_kernel(bzimage) == elf
