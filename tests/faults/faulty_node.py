"""A node with the real daemon, whose system calls can be made to fail."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from nri_resmgr.cli.workload import Workload
from nri_resmgr.host.cgroups.finder import unit_of_oci
from nri_resmgr.testing import Runtime
from nri_resmgr.testing.resctrl import Resctrl
from tests.daemon.host_nodes import KERNEL
from tests.faults.node_cgroups import NodeCgroups, UpdatedWorld
from tests.faults.node_daemon import Neighbours, NodeDaemon
from tests.faults.node_documents import NodeDocuments
from tests.faults.node_kubelet import kubelet_on
from tests.faults.node_pods import container_of, pod_of
from tests.faults.service_manager import service_manager_at
from tests.host.cpu_trees import intel_pstate, write
from tests.running.systemd_double import bus_below, systemd_on

_TIMES: Final = "".join(f"cpu{cpu} 1 0 1 7 1 0 0 0 0 0\n" for cpu in range(8))


class FaultyNode:
    """A runtime, a host of files, and the one daemon on it at a time.

    Args:
        folder: For all files.
        runtime: It has to be started.
        neighbours: They have to be, too.

    Attributes:
        daemon: The daemon.
        documents: Its configuration and adjustments.
        cgroups: Those of containers.
    """

    def __init__(self, folder: Path, runtime: Runtime, neighbours: Neighbours) -> None:
        self.folder = folder
        self.runtime = runtime
        self.systemd = neighbours.systemd
        self.manager = neighbours.manager
        self.daemon = NodeDaemon(folder, runtime, neighbours)
        self._kubelet = neighbours.kubelet
        runtime.world = world = UpdatedWorld()
        write(folder / "host", intel_pstate() | KERNEL | {"/proc/stat": _TIMES})
        resctrl = Resctrl()
        resctrl.mkdir("gold")
        resctrl.write_out(folder / "host")
        self.cgroups = NodeCgroups(folder / "host", world)
        self.documents = NodeDocuments(folder)

    def set_online(self, cpus: str) -> None:
        """Have the host take other CPUs online and offline."""
        new = self.folder / "online"
        new.write_text(f"{cpus}\n")
        new.rename(self.folder / "host/sys/devices/system/cpu/online")

    async def place(self, workload: Workload) -> None:
        """Run a pod with its container, as a kubelet would."""
        name = workload.name
        if name not in self.runtime.world.pods:
            self._kubelet.admit(workload)
            await self.runtime.run_pod(pod_of(workload))
        await self.runtime.create_container(name, container_of(workload))
        self.cgroups.write()
        await self.runtime.start_container(name)

    async def remove(self, name: str) -> None:
        """Stop a pod and remove it, whatever is there of it."""
        if name in self.runtime.world.pods:
            await self.runtime.stop_pod(name)
            await self.runtime.remove_pod(name)
            self._kubelet.forget(name)
        self.cgroups.write()

    def unit_cpus(self, name: str) -> str:
        """Return the CPUs that the daemon has set last in the unit of a container."""
        path = self.runtime.world.containers[name].linux.cgroups_path
        calls = self.systemd.values(unit_of_oci(path))
        return calls[-1]["AllowedCPUs"] if calls else ""


@asynccontextmanager
async def faulty_node(folder: Path) -> AsyncIterator[FaultyNode]:
    """Have a node with a runtime; no daemon outlives the block."""
    folder.mkdir()  # noqa: ASYNC240 - nothing else runs yet
    # The path of a socket has 107 characters at most, and pytest's folders are long.
    with (
        TemporaryDirectory(prefix="bus-") as short,
        bus_below(Path(short)) as bus,
        service_manager_at(Path(short, "notify")) as manager,
    ):
        async with (
            Runtime(folder) as runtime,
            systemd_on(bus) as systemd,
            kubelet_on(Path(short, "kubelet")) as kubelet,
        ):
            neighbours = Neighbours(bus, systemd, manager, kubelet)
            node = FaultyNode(folder, runtime, neighbours)
            try:
                yield node
            finally:
                await node.daemon.kill()
