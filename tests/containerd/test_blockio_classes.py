"""Block I/O classes of containers on a real containerd, as the kernel has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.host.block_devices import find_block_devices
from nri_resmgr.host.tree import HostTree
from tests.real_host.cgroups import Cgroup
from tests.real_host.containerd import Containerd
from tests.real_host.patience import wait_until
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import PodSpec
from tests.real_host.resources import Resources

pytestmark = pytest.mark.containerd

# Disks and loop devices, not what is stacked on them.
PATTERN: Final = "/dev/[hlnsvx]*[0-9a-z]"
KEY: Final = "blockioclass.resource-policy.nri.io"
IS_V2: Final = Path("/sys/fs/cgroup/cgroup.controllers").exists()


def document(rate: str) -> str:
    return f"""
apiVersion: config.nri/v1alpha1
kind: TopologyAwarePolicy
spec:
  control:
    blockio:
      enable: true
      usePodQoSAsDefaultClass: true
      classes:
        slow: [{{Devices: ["{PATTERN}"], ThrottleReadBps: {rate}}}]
"""


@pytest.fixture(scope="module")
def numbers() -> set[str]:
    """Return the numbers of all disks."""
    found = find_block_devices(HostTree("/"), [PATTERN])[PATTERN]
    if not found.devices:
        pytest.skip("this machine has no disk")
    return {str(one.number) for one in found.devices}


@pytest.fixture
def plugin(containerd: Containerd, tmp_path: Path) -> Iterator[PluginProcess]:
    socket, log = containerd.layout.nri_socket, tmp_path / "log"
    state = ("--state-dir", str(tmp_path / "state"))
    with PluginProcess.resource_policy(
        socket, log, *state, document=document("1M")
    ) as found:
        yield found


def limits(cgroup: Cgroup) -> dict[str, str]:
    """Return what is read per second at most, by the number of the disk."""
    file = "io.max" if IS_V2 else "blkio.throttle.read_bps_device"
    try:
        text = cgroup.read(file)
    except FileNotFoundError:
        return {}  # the controller is not enabled yet
    rows = (line.split()[:2] for line in text.splitlines())
    return {device: rate.removeprefix("rbps=") for device, rate in rows}


def test_a_container_is_in_its_class_and_follows_changes(
    containerd: Containerd, plugin: PluginProcess, numbers: set[str], tmp_path: Path
) -> None:
    spec = PodSpec("web", annotations={f"{KEY}/container.a": "slow"})
    with containerd.run_pod(spec) as pod:
        one = pod.start("a", Resources.guaranteed(0.1))
        other = pod.start("b", Resources.guaranteed(0.1))
        assert limits(one.cgroup) == dict.fromkeys(numbers, "1000000")
        assert limits(other.cgroup) == {}

        (tmp_path / "log.yaml").write_text(document("2M"))
        faster = dict.fromkeys(numbers, "2000000")
        wait_until(lambda: limits(one.cgroup) == faster, "it follows its class")
        # The runtime writes all that it knows with each update.
        one.update(Resources.guaranteed(0.2))
        assert limits(one.cgroup) == faster

        plugin.kill()
        (tmp_path / "log.yaml").write_text(document("2M").replace("true", "false"))
        plugin.start()
        wait_until(lambda: limits(one.cgroup) == {}, "it is let go")
