"""A node whose daemon prepares claims, with a kubelet's and an agent's side."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import attrs
import msgspec

from nri_resmgr.app.plugin.translate import KUBELET_NAME
from nri_resmgr.cli.workload import Workload
from nri_resmgr.control.client import Client
from nri_resmgr.daemon.dra import DRIVER
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.spool import CLAIMS, SpoolHeader, encode
from nri_resmgr.testing import Runtime
from nri_resmgr.testing.kubelet.dra import DraCalls, KubeletClaim, PluginManager
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, QosClass
from tests.control.daemon_parts import ask
from tests.daemon.restarts import Node
from tests.daemon.spooled import NODE, put, spool

DOCUMENT: Final = """\
apiVersion: config.nri/v1alpha1
kind: TopologyAwarePolicy
metadata: {name: default}
spec:
  reservedResources: {cpu: "cpuset:0"}
  dra: {enabled: true}
"""

A: Final = KubeletClaim("shop", "a", "aaaa-1")
B: Final = KubeletClaim("shop", "b", "bbbb-2")


@attrs.define(eq=False)
class ClaimNode:
    """A node with NUMA nodes of CPUs 0-3 and 4-7, of which CPU 0 is reserved.

    Attributes:
        allocations: What the scheduler has allocated, by the name of a claim: numbers
            of CPUs by device.
        why: Why the agent cannot have a claim, by its name.
    """

    node: Node
    folder: Path
    kubelet: Path
    allocations: dict[str, dict[str, int]] = attrs.field(factory=dict)
    why: dict[str, str] = attrs.field(factory=dict)

    @property
    def flags(self) -> tuple[str, ...]:
        return (
            *("--config-file", str(self.folder / "document.yaml")),
            *("--spool", str(self.folder / "spool")),
            *("--kubelet-dir", str(self.kubelet)),
            *("--cdi-dir", str(self.folder / "cdi")),
            *("--control-socket", str(self.folder / "run/control.sock")),
        )

    @property
    def client(self) -> Client:
        return Client(str(self.folder / "run/control.sock"))

    async def registered(self) -> DraCalls:
        manager = PluginManager(self.kubelet)
        async with asyncio.timeout(60):
            return manager.calls(await manager.registered(DRIVER))

    def files(self) -> dict[str, Any]:
        """Return the CDI files by name."""
        folder = self.folder / "cdi"
        return {one.name: json.loads(one.read_text()) for one in folder.glob("*.json")}

    def variable(self, claim: KubeletClaim) -> str:
        """Return what the runtime adds to containers with a claim."""
        (device,) = self.files()[f"{DRIVER}_claim-{claim.uid}.json"]["devices"]
        (variable,) = device["containerEdits"]["env"]
        return str(variable)

    def saved(self) -> dict[str, str]:
        """Return the CPUs of claims in the state file, by UID."""
        if not self.node.checkpoint.exists():
            return {}
        lines = self.node.checkpoint.read_text().splitlines()[1:]
        rows = (json.loads(line) for line in lines)
        return {key: row["cpus"] for table, key, row in rows if table == "claim"}

    async def claims(self) -> Mapping[str, Any]:
        return await ask(self.client, "/v1/claims")

    async def come(self, name: str, cpus: int, *claims: KubeletClaim) -> str:
        """Run a container in a pod of its own, with claims; return its id."""
        variables = [self.variable(one) for one in claims]
        return await self.come_with(name, cpus, *variables)

    async def come_with(self, name: str, cpus: int, *variables: str) -> str:
        """Run a container with variables in its environment; return its id."""
        qos = QosClass.GUARANTEED if cpus >= 1000 else QosClass.BURSTABLE
        load, runtime = Workload(name, qos, cpus), self.node.runtime
        if load.pod.id not in runtime.world.pods:
            await runtime.run_pod(load.pod)
        container = msgspec.structs.replace(
            load.container,
            labels={KUBELET_NAME: name},
            env=variables,
        )
        await runtime.create_container(load.pod.id, container)
        await runtime.start_container(container.id)
        return container.id

    def cpus(self, container: str) -> CpuSet:
        """Return where a container runs."""
        return CpuSet.parse(self.node.cpus()[container])

    async def be_agent(self) -> None:
        """Answer what the daemon asks for, as an agent does, for ever."""
        seen: set[str] = set()
        while True:
            try:
                wanted = (await self.claims())["wanted"]
            except Exception:  # noqa: BLE001 - the daemon is away at times
                wanted = []
            if {one["ask"] for one in wanted} != seen:
                seen = {one["ask"] for one in wanted}
                self.hand_over([self._answer(one) for one in wanted])
            await asyncio.sleep(0.02)

    def hand_over(self, answers: list[dict[str, Any]]) -> None:
        header = SpoolHeader("ResourceClaimList", node=NODE)
        put(self.folder / "spool" / CLAIMS, encode(header, json.dumps(answers)))

    def _answer(self, wanted: dict[str, str]) -> dict[str, Any]:
        name = wanted["name"]
        if why := self.why.get(name):
            return {**wanted, "why": why}
        results = [
            {"request": "r", "pool": NODE, "device": device, "cpus": str(count)}
            for device, count in self.allocations.get(name, {}).items()
        ]
        return {**wanted, "results": results}


@asynccontextmanager
async def claim_node(
    folder: Path, document: str = DOCUMENT, *, has_agent: bool = False
) -> AsyncIterator[ClaimNode]:
    """Set up a node, with an agent's side unless there is a real one."""
    (folder / "document.yaml").write_text(document)
    spool(folder)
    write_tree(sysfs_files(parse_spec("1s2n4c1t")), folder / "host")
    # The paths of pytest's folders are too long for sockets below them.
    with TemporaryDirectory(prefix="kubelet-") as kubelet:
        async with Runtime(folder) as runtime:
            found = ClaimNode(Node(runtime, folder), folder, Path(kubelet))
            agent = asyncio.create_task(
                asyncio.sleep(0) if has_agent else found.be_agent()
            )
            try:
                yield found
            finally:
                agent.cancel()
                await asyncio.wait({agent})
