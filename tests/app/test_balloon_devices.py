"""Which CPUs a type that is close to a path of sysfs takes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.app.policies.balloon_types import cpus_close_to
from nri_resmgr.host.tree import BadHostFile, HostTree
from nri_resmgr.topology.synthetic import parse_spec

MACHINE = parse_spec("2s4c1t")  # node 0: 0-3, node 1: 4-7
CARD = "sys/devices/pci0000:80/0000:81:00.0"


@pytest.fixture
def host(tmp_path: Path) -> HostTree:
    files = {
        f"{CARD}/numa_node": "1",
        f"{CARD}/net/ens3/mtu": "1500",
        "sys/devices/system/cpu/cpu6/cache/index2/shared_cpu_list": "6-7",
        "sys/devices/pci0000:00/0000:00:01.0/local_cpulist": "0-1",
        "sys/devices/pci0000:00/0000:00:02.0/local_cpulist": "many",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    net = tmp_path / "sys/class/net"
    net.mkdir(parents=True)
    (net / "ens3").symlink_to(tmp_path / CARD / "net/ens3")
    return HostTree(tmp_path)


@pytest.mark.parametrize(
    ("path", "cpus"),
    [
        pytest.param("/sys/devices/system/node/node1", "4-7", id="a node"),
        pytest.param(
            "/sys/devices/system/node/node7", "", id="no node of this machine"
        ),
        pytest.param("/sys/devices/system/cpu/cpu6", "6", id="a CPU"),
        pytest.param("/sys/devices/system/cpu/cpu6/cache/index2", "6-7", id="a cache"),
        pytest.param("/sys/class/net/ens3", "4-7", id="a network card, by its link"),
        pytest.param("/sys/devices/pci0000:00/0000:00:01.0", "0-1", id="local CPUs"),
        pytest.param(
            "/sys/devices/pci0000:00/0000:00:01.0/local_cpulist", "0-1", id="a file"
        ),
        pytest.param("/sys/class/net/absent", "", id="nothing that is there"),
    ],
)
def test_cpus_close_to_a_path(path: str, cpus: str, host: HostTree) -> None:
    assert str(cpus_close_to(path, MACHINE, host)) == cpus


def test_a_file_that_is_not_what_it_should_be_is_an_error(host: HostTree) -> None:
    with pytest.raises(BadHostFile):
        cpus_close_to("/sys/devices/pci0000:00/0000:00:02.0", MACHINE, host)
