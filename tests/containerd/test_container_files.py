"""The files that containers of the topology-aware policy find, on a real containerd."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from tests.real_host.containerd import Containerd
from tests.real_host.patience import wait_until
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import PodSpec
from tests.real_host.resources import Resources

pytestmark = pytest.mark.containerd

POLICY = "{apiVersion: config.nri/v1alpha1, kind: TopologyAwarePolicy}"
FILE = "/.nri-resource-policy/resources.sh"
MEMS = str(read_machine(HostTree("/")).memory_nodes)


@pytest.fixture
def folders(containerd: Containerd, tmp_path: Path) -> Iterator[Path]:
    """Start the plugin; return where the folders of its containers are."""
    socket, runs = containerd.layout.nri_socket, tmp_path / "run"
    with PluginProcess.resource_policy(
        socket, tmp_path / "log", "--run-dir", str(runs), document=POLICY
    ):
        yield runs / "containers"


def test_a_container_finds_its_files_and_cannot_change_them(
    containerd: Containerd, folders: Path
) -> None:
    pod = containerd.run_pod(PodSpec("web", qos=Resources.best_effort().qos))
    container = pod.start("web", Resources.best_effort())
    found = container.exec("cat", FILE)
    mounts = container.exec("cat", "/proc/self/mountinfo")
    (line,) = (one for one in mounts.splitlines() if "/.nri-resource-policy" in one)
    options = line.split()[5].split(",")

    assert f'SHARED_CPUS="{container.cpus()}"\n' in found
    assert f'ALL_MEMS="{MEMS}"\n' in found
    assert {"ro", "nosuid", "nodev"} <= set(options)
    assert [path.name for path in folders.iterdir()] == [container.id]

    container.stop()
    wait_until(lambda: not list(folders.iterdir()), "its folder is gone")
