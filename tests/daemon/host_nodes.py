"""A node whose host has frequencies, idle states and interrupts to set."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec

from nri_resmgr.app.plugin.translate import KUBELET_NAME
from nri_resmgr.cli.workload import Workload
from nri_resmgr.stub import ContainerAdjustment
from nri_resmgr.testing import Runtime
from nri_resmgr.testing.resctrl import Resctrl
from nri_resmgr.values import QosClass
from tests.app.class_rig import files_of
from tests.daemon.restarts import Node
from tests.host.cpu_trees import CPU, intel_pstate, write
from tests.waiting import until

POLICIES: Final = f"{CPU}/cpufreq"
NIC, DISK, DEFAULT = (
    "/proc/irq/31/smp_affinity_list",
    "/proc/irq/28/smp_affinity_list",
    "/proc/irq/default_smp_affinity",
)
INTERRUPTS: Final = (
    "           CPU0       CPU1\n"
    " 28:          7          0  PCI-MSI 0-edge      nvme0q1\n"
    " 31:          0          9  PCI-MSI 1-edge      eth0-rx-0\n"
)
KERNEL: Final = {
    "/proc/sys/kernel/random/boot_id": "4f5b0d9e-0001",
    "/proc/interrupts": INTERRUPTS,
    NIC: "0-7",
    DISK: "0-7",
    DEFAULT: "ff",
}
CLASS_KEY: Final = "cpu-class.resource-policy.nri.io/pod"
IRQ_KEY: Final = "irq-affinity.resource-policy.nri.io/pod"

TREE: Final = """\
apiVersion: config.nri/v1alpha1
kind: TopologyAwarePolicy
spec:
  reservedResources: {cpu: "cpuset:0"}
  cpuClasses:
  - {name: fast, minFreq: base, freqGovernor: performance, disabledCstates: [C6]}
  - {name: quiet, maxFreq: 1.2GHz}
  sharedPoolCPUClass: quiet
  defaultExclusiveCPUClass: fast
"""
BALLOONS: Final = """\
apiVersion: config.nri/v1alpha1
kind: BalloonsPolicy
spec:
  reservedResources: {cpu: "cpuset:0"}
  idleCPUClass: quiet
  cpuClasses:
  - {name: fast, minFreq: base}
  - {name: quiet, maxFreq: 1.2GHz}
  balloonTypes:
  - {name: quick, cpus: "3", cpuClass: fast, irqMode: isolate, namespaces: [default]}
"""
PLAIN: Final = """\
apiVersion: config.nri/v1alpha1
kind: TopologyAwarePolicy
spec:
  reservedResources: {cpu: "cpuset:0"}
"""
OFTEN: Final = ("--verify-interval", "1")


@attrs.frozen(eq=False)
class HostNode(Node):
    """A node, and what its host's files have in them.

    Attributes:
        before: All of them, before any daemon came.
    """

    before: Mapping[str, str]

    @property
    def host(self) -> Path:
        return self.folder / "host"

    @property
    def document(self) -> Path:
        return self.folder / "document.yaml"

    def set(self, path: str, text: str) -> None:
        """Write a file of the host, as another program would."""
        (self.host / path[1:]).write_text(f"{text}\n")

    def changed(self) -> dict[str, str]:
        """The files that are otherwise than before any daemon."""
        found = contents(self.host)
        return {path: text for path, text in found.items() if self.before[path] != text}

    async def becomes(self, expected: Mapping[str, str]) -> None:
        """Wait until just these files are otherwise than before."""
        try:
            await until(lambda: self.changed() == expected, within=8)
        except TimeoutError:
            raise AssertionError(f"{self.changed()}, not {expected}") from None

    async def pod(
        self, name: str, cpus: int, annotations: Mapping[str, str] | None = None
    ) -> str:
        """Run a Guaranteed pod of one container."""
        asked = Workload(name, QosClass.GUARANTEED, cpus * 1000)
        pod = msgspec.structs.replace(asked.pod, annotations=dict(annotations or {}))
        await self.runtime.run_pod(pod)
        labels = {KUBELET_NAME: name}
        container = msgspec.structs.replace(asked.container, id=name, labels=labels)
        await self.runtime.create_container(pod.id, container)
        await self.runtime.start_container(name)
        return name

    async def in_cgroup(
        self, asked: Workload, annotations: Mapping[str, str] | None = None
    ) -> ContainerAdjustment:
        """Run a pod of one container in `add_cgroups`' cgroup of its name.

        Returns:
            The adjustment of the container, as it was sent to the runtime.
        """
        return await run_in_cgroup(self.runtime, asked, annotations)

    def running(self, *flags: str) -> Any:
        """Run the daemon, which goes by `document`."""
        return self.daemon("--config-file", str(self.document), *flags)


async def run_in_cgroup(
    runtime: Runtime, asked: Workload, annotations: Mapping[str, str] | None = None
) -> ContainerAdjustment:
    """Run a pod of one container, whose id is its name; see `HostNode.in_cgroup`."""
    pod = msgspec.structs.replace(asked.pod, annotations=dict(annotations or {}))
    await runtime.run_pod(pod)
    assert asked.container.linux
    linux = msgspec.structs.replace(
        asked.container.linux, cgroups_path=f"/kubepods/{asked.name}"
    )
    container = msgspec.structs.replace(asked.container, id=asked.name, linux=linux)
    created = await runtime.create_container(pod.id, container)
    await runtime.start_container(asked.name)
    return created.adjustment


def add_gold_group(host: Path) -> None:
    """Add a resctrl with the group `gold`."""
    resctrl = Resctrl()
    resctrl.mkdir("gold")
    resctrl.write_out(host)


def add_cgroups(host: Path, controllers: str, files: Mapping[str, str]) -> None:
    """Add the cgroups of the containers `web` and `next`, with a thread each."""
    root = host / "sys/fs/cgroup"
    files_of(root, {"cgroup.controllers": controllers})
    files_of(root / "kubepods", files)
    for thread, name in ((7, "web"), (8, "next")):
        threads = {"cgroup.threads": f"{thread}\n"}
        files_of(root / "kubepods" / name, {**files, **threads})


def contents(root: Path) -> dict[str, str]:
    files = [path for path in root.rglob("*") if path.is_file()]
    return {f"/{path.relative_to(root)}": path.read_text().strip() for path in files}


@asynccontextmanager
async def host_node(
    folder: Path,
    document: str,
    spoil: Callable[[dict[str, str]], object] = lambda _: None,
) -> AsyncIterator[HostNode]:
    """Set up a node of two packages with two cores of two threads each.

    Args:
        folder: For everything.
        document: The first one.
        spoil: Given the files of the drivers and the kernel, to change them.
    """
    files = intel_pstate() | KERNEL
    spoil(files)
    write(folder / "host", files)
    async with Runtime(folder) as runtime:
        found = HostNode(runtime, folder, contents(folder / "host"))
        found.document.write_text(document)
        yield found


def fast(*cpus: int) -> dict[str, str]:
    """What `TREE` makes of CPUs that containers have to themselves."""
    found: dict[str, str] = {}
    for cpu in cpus:
        found |= {
            f"{POLICIES}/policy{cpu}/scaling_governor": "performance",
            f"{POLICIES}/policy{cpu}/energy_performance_preference": "performance",
            f"{POLICIES}/policy{cpu}/scaling_min_freq": "2000000",
            f"{CPU}/cpu{cpu}/cpuidle/state3/disable": "1",
        }
    return found


def quiet(*others: int) -> dict[str, str]:
    """What documents make of all CPUs but exclusive ones."""
    cpus = sorted(set(range(8)) - set(others))
    return {f"{POLICIES}/policy{cpu}/scaling_max_freq": "1200000" for cpu in cpus}
