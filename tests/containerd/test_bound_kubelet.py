"""A kubelet that is bound to the service starts no container without the daemon.

On a real containerd, with a program in the place of the kubelet.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import attrs
import pytest

from nri_resmgr.cli.flags import PREFIX
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import CpuSet
from tests.deploy.service_manager import ServiceManager, install, service_manager
from tests.deploy.test_sandbox import UNIT
from tests.real_host.containerd import Containerd
from tests.real_host.containerd_config import Options
from tests.real_host.patience import wait_until

ROOT: Final = Path(__file__).parents[2]
FAIL_CLOSED: Final = UNIT.parent / "fail-closed"
KUBELET: Final = "kubelet.service"
PROGRAM: Final = "/opt/nri-resmgr/bin/nri-resmgr"
ALL: Final = read_machine(HostTree("/")).online

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.skipif(len(ALL) < 2, reason="pinned containers have all CPUs, too"),
]


@attrs.frozen(eq=False)
class Node:
    """A containerd, and services of the daemon and of the kubelet."""

    containerd: Containerd
    manager: ServiceManager
    output: Path

    def started(self) -> list[CpuSet]:
        """Return the CPUs of all containers that the kubelet has started."""
        text = self.output.read_text() if self.output.exists() else ""
        return [CpuSet.parse(line) for line in text.splitlines()]

    def wait_for_containers(self) -> None:
        """Wait until the kubelet has started some more."""
        before = len(self.started())
        wait_until(lambda: len(self.started()) > before + 2, "containers", 60)

    def wait_for_kubelet(self, state: str) -> None:
        """Wait until the service of the kubelet is in a state."""
        wait_until(
            lambda: self.manager.show(KUBELET, "ActiveState") == state,
            f"kubelet {state}",
            60,
        )

    def attempts(self) -> int:
        """Return how often the daemon was started again."""
        return int(self.manager.show(UNIT.name, "NRestarts") or 0)


@pytest.fixture
def node(
    new_containerd: Callable[[Options], Containerd], tmp_path: Path
) -> Iterator[Node]:
    containerd = new_containerd(Options())
    containerd.start()
    units, output = tmp_path / "units", tmp_path / "started"
    units.mkdir()
    install(UNIT, units, [FAIL_CLOSED / "nri-resmgr.conf"])
    # Containers mount from there; the service's own /run is not that of containerd.
    (units / f"{UNIT.name}.d" / "run-dir.conf").write_text(
        f"[Service]\nEnvironment={PREFIX}RUN_DIR={tmp_path}/run\n"
        f"ReadWritePaths={tmp_path}\n"
    )
    layout = containerd.layout
    words = (layout.cri_socket, containerd.cgroup_root, output)
    program = f"{sys.executable} -m tests.containerd.starting_kubelet"
    (units / KUBELET).write_text(
        f"[Service]\nWorkingDirectory={ROOT}\nRestart=always\n"
        f"ExecStart={program} {' '.join(map(str, words))}\n"
    )
    (units / f"{KUBELET}.d").mkdir()
    shutil.copy(FAIL_CLOSED / "kubelet.conf", units / f"{KUBELET}.d")
    with service_manager(units, layout.nri_socket.parent) as manager:
        yield Node(containerd, manager, output)


def kill(node: Node) -> None:
    node.manager.systemctl("kill", "--signal=KILL", UNIT.name)


def test_no_container_starts_while_the_daemon_is_away(node: Node) -> None:
    node.manager.systemctl("start", KUBELET)
    node.wait_for_containers()
    kill(node)
    node.wait_for_containers()

    node.manager.within("mv", PROGRAM, f"{PROGRAM}.away")
    kill(node)
    node.wait_for_kubelet("inactive")
    before, attempts = node.started(), node.attempts()
    wait_until(lambda: node.attempts() > attempts + 1, "two more starts", 60)
    meanwhile = node.started()
    node.manager.within("mv", f"{PROGRAM}.away", PROGRAM)
    node.wait_for_containers()

    assert meanwhile == before
    # For some milliseconds after each kill the kubelet is there (docs/fail-closed.md).
    unpinned = [cpus for cpus in node.started() if cpus in (CpuSet(), ALL)]
    assert len(unpinned) <= 2
