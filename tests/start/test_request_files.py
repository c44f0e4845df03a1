"""What requests of a real daemon with classes open and import: nothing.

The runtime waits for each answer, and a file of the host may be slow, or be many.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import attrs
import msgspec
import pytest

from nri_resmgr.cli.workload import Workload
from nri_resmgr.daemon.late_imports import LATE
from nri_resmgr.stub.model import Container, Mount, Pod
from nri_resmgr.testing import Runtime
from nri_resmgr.values import QosClass
from tests.app.class_rig import files_of
from tests.daemon.daemon_process import daemon
from tests.daemon.host_nodes import KERNEL, add_cgroups, add_gold_group
from tests.host.cpu_trees import MACHINE, intel_pstate
from tests.start.test_imports import CLASSES
from tests.waiting import until

pytestmark = pytest.mark.process

HERE: Final = Path(__file__).parent
DISK: Final = "/sys/devices/pci0/disk"
TABLE: Final = "/proc/1/mountinfo"
MOUNTED: Final = "1 0 0:30 / / rw - overlay o rw\n2 1 8:1 / /mnt rw - ext4 d rw\n"
DATA: Final = Mount("/data", "bind", "/mnt/data/pod", ("rbind", "rw"))
KEY: Final = "resource-policy.nri.io/pod"
WISHES: Final[Mapping[str, Mapping[str, str]]] = {
    "an RDT class": {f"rdtclass.{KEY}": "gold"},
    "a block I/O class": {f"blockioclass.{KEY}": "slow"},
    "memory QoS": {"class.memory-qos.nri.io": "bronze"},
    "a memory policy": {"class.memory-policy.nri.io": "near"},
    "a misc limit": {"misc-limit.resource-policy.nri.io": "sev 2"},
    "interrupts": {f"irq-affinity.{KEY}": "claim: ['*eth*']"},
    "a scheduling class": {f"scheduling-class.{KEY}": "batch"},
    "a governor": {"cpu-freq-governor.crio.io": "performance"},
    "a key that there is not": {f"hide-hyperthread.{KEY}": "true"},
}


@attrs.frozen
class Trace:
    """The lines that `request_trace` writes: request, event, its subject, thread."""

    path: Path

    def lines(self) -> list[list[str]]:
        whole, _, _ = self.path.read_text().rpartition("\n")
        return [line.rsplit(" ", 1) for line in whole.splitlines()]

    def of_requests(self) -> list[str]:
        """Return what was done in requests."""
        return [what for what, _ in self.lines() if not what.startswith("- ")]

    async def shows(self, what: str) -> str:
        """Wait until something was done beside requests; return its thread."""
        await until(lambda: f"- {what}" in [found for found, _ in self.lines()])
        return next(thread for found, thread in self.lines() if found == f"- {what}")

    async def ends(self, what: str, process: int) -> None:
        """Wait until something was done, and the thread that did it has ended."""
        task = Path(f"/proc/{process}/task/{await self.shows(what)}")
        await until(lambda: not task.exists())


def file_of(module: str) -> str | None:
    """Return the file of a module that an import opens first."""
    spec = find_spec(module)
    return spec.cached if spec else None


def add_host(root: Path) -> None:
    """Add the kernel's files: frequencies, interrupts, RDT, cgroups, a disk."""
    files_of(root, intel_pstate() | KERNEL)
    add_gold_group(root)
    files = {"cgroup.procs": "", "io.stat": "", "io.weight": "default 100\n"}
    add_cgroups(root, "cpuset cpu io memory misc", files)
    files_of(root, {"sys/fs/cgroup/misc.capacity": "sev 10\n"})
    files_of(root, {f"{DISK}/numa_node": "0\n"})
    link = root / "sys/dev/block/8:1"
    link.parent.mkdir(parents=True)
    link.symlink_to(f"../../..{DISK}")


def asking(annotations: Mapping[str, str], *mounts: Mount) -> tuple[Pod, Container]:
    asked = Workload("web", QosClass.GUARANTEED, 1000)
    assert asked.container.linux
    linux = msgspec.structs.replace(asked.container.linux, cgroups_path="/kubepods/web")
    pod = msgspec.structs.replace(asked.pod, annotations=annotations)
    return pod, msgspec.structs.replace(asked.container, linux=linux, mounts=mounts)


async def live(runtime: Runtime, pod: Pod, container: Container) -> None:
    """Take the container of a pod from its creation to its removal."""
    await runtime.create_container(pod.id, container)
    await runtime.start_container(container.id)
    await runtime.stop_container(container.id)
    await runtime.remove_container(container.id)
    await runtime.stop_pod(pod.id)
    await runtime.remove_pod(pod.id)


async def test_requests_open_no_file_and_import_nothing(tmp_path: Path) -> None:
    trace, document = Trace(tmp_path / "trace"), tmp_path / "document.yaml"
    document.write_text(CLASSES)
    folders = ("--state-dir", f"{tmp_path}/state", "--run-dir", f"{tmp_path}/run")
    environment = {
        "PYTHONPATH": f"{HERE / 'request_trace'}:{HERE.parents[1]}",
        "REQUEST_TRACE": str(trace.path),
    }
    async with daemon(
        tmp_path,
        MACHINE,
        *("--config-file", str(document), "--control-socket", "", *folders),
        before=add_host,
        environment=environment,
    ) as node:
        host, process = tmp_path / "host", node.process.pid
        await trace.shows(f"open {file_of(LATE[-1])}")
        await trace.ends(f"open {host}{TABLE}", process)
        # A volume is mounted before the sandbox of its pod is made; where it is, is
        # read once the reply about the sandbox is out.
        files_of(host, {TABLE: MOUNTED})
        pod, container = asking({}, DATA)
        await node.runtime.run_pod(pod)
        await trace.ends(f"open {host}{DISK}/numa_node", process)
        await live(node.runtime, pod, container)
        found = {"a volume": trace.of_requests()}
        for name, wish in WISHES.items():
            before = len(trace.of_requests())
            pod, container = asking(wish)
            await node.runtime.run_pod(pod)
            await live(node.runtime, pod, container)
            found[name] = trace.of_requests()[before:]

    # The folder that is mounted into a container has to be there before it starts.
    made = f"CreateContainer os.mkdir {container.id}"
    assert found == {name: [made] for name in found}
