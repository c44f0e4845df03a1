from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.qemu.layout import ISOLATED, NODES

pytestmark = pytest.mark.numa

_SYSTEM = Path("/sys/devices/system")
_CGROUP = Path("/sys/fs/cgroup")


def node_file(number: int, name: str) -> str:
    return (_SYSTEM / "node" / f"node{number}" / name).read_text().strip()


def cpu_files(name: str) -> list[str]:
    cpus = range(os.cpu_count() or 0)
    return [(_SYSTEM / f"cpu/cpu{cpu}" / name).read_text().strip() for cpu in cpus]


def test_has_16_cpus_and_5_nodes() -> None:
    online = [(_SYSTEM / kind / "online").read_text() for kind in ("cpu", "node")]

    assert online == ["0-15\n", "0-4\n"]


def test_the_clock_runs_at_the_speed_of_the_host() -> None:
    # QEMU keeps this one by the host's clock. It counts whole seconds.
    other = Path("/sys/class/rtc/rtc0/since_epoch")
    began, first = time.monotonic(), int(other.read_text())
    time.sleep(8)
    passed, counted = time.monotonic() - began, int(other.read_text()) - first

    assert passed / 2 < counted < passed * 2


def test_each_node_has_its_cpus_and_one_has_none() -> None:
    cpus = [node_file(number, "cpulist") for number in range(5)]

    assert cpus == ["0-3", "4-7", "8-11", "12-15", ""]


def test_the_last_core_is_isolated() -> None:
    assert (_SYSTEM / "cpu/isolated").read_text() == f"{ISOLATED}\n"


def test_distances_are_the_chosen_ones() -> None:
    distances = [
        tuple(map(int, node_file(number, "distance").split()))
        for number in range(len(NODES))
    ]

    assert distances == [node.distances for node in NODES]


def test_all_five_nodes_have_memory() -> None:
    assert (_SYSTEM / "node/has_memory").read_text() == "0-4\n"


def test_the_node_without_cpus_is_slow_like_a_cxl_card() -> None:
    speeds = [
        int(node_file(number, "access0/initiators/read_bandwidth"))
        for number in range(len(NODES))
    ]

    assert max(speeds[:4]) == min(speeds[:4]) > 2 * speeds[4]


def test_two_sockets_of_two_dies_of_two_cores_of_two_threads() -> None:
    packages = cpu_files("topology/package_cpus_list")
    dies = cpu_files("topology/die_cpus_list")
    cores = cpu_files("topology/core_cpus_list")

    assert packages == ["0-7"] * 8 + ["8-15"] * 8
    assert dies == [f"{first}-{first + 3}" for first in (0, 4, 8, 12) for _ in range(4)]
    assert cores == [f"{first}-{first + 1}" for first in range(0, 16, 2) for _ in "ab"]


def test_a_last_level_cache_is_shared_inside_a_die_only() -> None:
    shared = cpu_files("cache/index3/shared_cpu_list")

    assert shared == cpu_files("topology/die_cpus_list")


def test_cgroup_v2_has_the_controllers_that_containers_need() -> None:
    controllers = set((_CGROUP / "cgroup.controllers").read_text().split())

    assert controllers >= {"cpuset", "cpu", "io", "memory", "hugetlb", "pids"}
