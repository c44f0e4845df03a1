"""Fifty kills of the plugin and of containerd: containers stay pinned as decided."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

import pytest

from nri_resmgr.host.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import CpuSet
from tests.testbed.containerd import Containerd
from tests.testbed.documents import STATIC
from tests.testbed.patience import wait_until
from tests.testbed.plugin_process import PluginProcess
from tests.testbed.pods import Container, PodSpec
from tests.testbed.resources import Resources

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

KILLS: Final = 50  # every other one of containerd

MACHINE = read_machine(HostTree("/"))
ALL = MACHINE.online - MACHINE.isolated
MANY = len(ALL) // 2


@pytest.fixture
def plugin(containerd: Containerd, tmp_path: Path) -> Iterator[PluginProcess]:
    state = ("--state-dir", str(tmp_path / "state"))
    socket, log = containerd.layout.nri_socket, tmp_path / "log"
    with PluginProcess.resource_policy(socket, log, *state, document=STATIC) as process:
        yield process


def start(daemon: Containerd, name: str, resources: Resources) -> Container:
    pod = daemon.run_pod(PodSpec(name, qos=resources.qos))
    return pod.start(name, resources)


def cpus_of(container: Container) -> CpuSet:
    return CpuSet.parse(container.cgroup.read("cpuset.cpus"))


class Node:
    """Containers that run through everything, and one after the other beside them."""

    def __init__(self, daemon: Containerd, plugin: PluginProcess) -> None:
        self._daemon, self._plugin = daemon, plugin
        self.exclusive = start(daemon, "exclusive", Resources.guaranteed(MANY))
        self.own = cpus_of(self.exclusive)
        self.shared = [start(daemon, f"s{n}", Resources.best_effort()) for n in (0, 1)]

    def kill_plugin(self, number: int, delay: float) -> None:
        """Kill it while a container is being created."""
        creating = threading.Thread(target=self._one_more, args=(f"late{number}",))
        creating.start()
        time.sleep(delay)
        self._plugin.kill()
        creating.join()
        self._plugin.start()

    def kill_containerd(self) -> None:
        """Kill it with all containers running."""
        times = len(self._plugin.events("plugin.synchronized"))
        self._daemon.kill()
        self._daemon.start()
        self._plugin.wait_for("plugin.synchronized", times + 1)

    def pinned(self) -> bool:
        """Whether everybody is where it was decided, as the kernel has it."""
        return cpus_of(self.exclusive) == self.own and all(
            cpus_of(one) == ALL - self.own for one in self.shared
        )

    def _one_more(self, name: str) -> None:
        self.shared.append(start(self._daemon, name, Resources.best_effort()))
        self.shared.pop(1).remove()


def test_containers_stay_pinned(containerd: Containerd, plugin: PluginProcess) -> None:
    random = Random(0)  # noqa: S311 - the same moments each time
    node = Node(containerd, plugin)
    assert node.pinned()
    for number in range(KILLS):
        if number % 2:
            node.kill_containerd()
        else:
            node.kill_plugin(number, random.uniform(0.0, 0.3))
        # The runtime updates containers after the plugin has answered.
        wait_until(node.pinned, f"all to be pinned after kill {number}")
    before = node.own

    assert cpus_of(node.exclusive) == before
    assert all(one.is_running() for one in (node.exclusive, *node.shared))
