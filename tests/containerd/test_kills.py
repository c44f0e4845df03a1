"""Fifty kills of the plugin and of containerd: containers stay pinned as decided."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

import pytest

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import CpuSet
from tests.real_host.containerd import Containerd
from tests.real_host.documents import STATIC
from tests.real_host.patience import wait_until
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import Container, Pod, PodSpec
from tests.real_host.resources import Resources

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

KILLS: Final = 50  # every other one of containerd

# After a synchronization the plugin writes cgroups at once; the machine may be busy.
SOON: Final = 10.0  # seconds

# What a containerd logs, with or without "and synchronized" behind it.
DONE: Final = r"plugin \"90-resource-policy\" connected"

MACHINE = read_machine(HostTree("/"))
ALL = MACHINE.online - MACHINE.isolated
MANY = len(ALL) // 2


@pytest.fixture
def plugin(containerd: Containerd, tmp_path: Path) -> Iterator[PluginProcess]:
    state = ("--state-dir", str(tmp_path / "state"))
    socket, log = containerd.layout.nri_socket, tmp_path / "log"
    with PluginProcess.resource_policy(socket, log, *state, document=STATIC) as process:
        yield process


def start(daemon: Containerd, name: str, resources: Resources) -> tuple[Pod, Container]:
    pod = daemon.run_pod(PodSpec(name, qos=resources.qos))
    return pod, pod.start(name, resources)


def cpus_of(container: Container) -> CpuSet:
    return CpuSet.parse(container.cgroup.read("cpuset.cpus"))


class Node:
    """Containers that run through everything, and one after the other beside them.

    Attributes:
        creation: Seconds that a container takes to be created, and another to end.
    """

    def __init__(self, daemon: Containerd, plugin: PluginProcess) -> None:
        self._daemon, self._plugin = daemon, plugin
        self._whole = start(daemon, "exclusive", Resources.guaranteed(MANY))
        self.own = cpus_of(self._whole[1])
        self._shared = [start(daemon, f"s{n}", Resources.best_effort()) for n in (0, 1)]
        begin = time.monotonic()
        self._one_more("first")
        self.creation = time.monotonic() - begin

    def kill_plugin(self, number: int, delay: float) -> None:
        """Kill it while a container is being created, or another ends."""
        creating = threading.Thread(target=self._one_more, args=(f"late{number}",))
        creating.start()
        time.sleep(delay)
        self._plugin.kill()
        creating.join()
        with self._synchronizing():
            self._plugin.start()

    def kill_containerd(self) -> None:
        """Kill it with all containers running."""
        with self._synchronizing():
            self._daemon.kill()
            self._daemon.start()

    def running(self) -> list[Container]:
        """All that run, the one with CPUs of its own first."""
        return [container for _, container in (self._whole, *self._shared)]

    def pinned(self) -> list[CpuSet]:
        """Return the CPUs of each of them, as the kernel has it."""
        return [cpus_of(container) for container in self.running()]

    def decided(self) -> list[CpuSet]:
        """Return what they should be in the end."""
        return [self.own] + [ALL - self.own] * len(self._shared)

    def last_words(self) -> str:
        """Quote what containerd did not like of late, and what the plugin did."""
        lines = self._daemon.log_text().splitlines()[-200:]
        bad = [one for one in lines if "level=error" in one or "level=warn" in one]
        return "\n".join((*bad, *self._plugin.log_text.splitlines()[-10:]))

    @contextmanager
    def _synchronizing(self) -> Iterator[None]:
        """Wait until the runtime has done what the plugin answered it.

        It says so after it has updated the containers, each of which it writes to the
        disk several times: beside a busy one this can take any time.
        """
        times = self._daemon.log_text().count(DONE)
        yield
        wait_until(
            lambda: self._daemon.log_text().count(DONE) > times, "a plugin in use", 60
        )

    def _one_more(self, name: str) -> None:
        self._shared.append(start(self._daemon, name, Resources.best_effort()))
        self._shared.pop(1)[0].remove()


def test_containers_stay_pinned(containerd: Containerd, plugin: PluginProcess) -> None:
    random = Random(0)  # noqa: S311 - the same moments each time
    node = Node(containerd, plugin)
    assert node.pinned() == node.decided()
    for number in range(KILLS):
        if number % 2:
            node.kill_containerd()
        else:
            node.kill_plugin(number, random.uniform(0.0, node.creation))
        end = time.monotonic() + SOON
        while (found := node.pinned()) != node.decided():
            if time.monotonic() > end:
                pytest.fail(f"after kill {number}: {found}; {node.last_words()}")
            time.sleep(0.01)

    assert all(one.is_running() for one in node.running())
