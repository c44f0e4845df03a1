"""Nodes to monitor: one that `demo` has, and one whose daemon uses every feature."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.agent.api import Access
from nri_resmgr.cli.workload import Workload
from nri_resmgr.testing import PluginRefused
from nri_resmgr.values import QosClass
from tests.agent.agent_process import ENDPOINTS, NODE, agent_process, kubeconfig_of
from tests.agent.fake_api_server import FakeApiServer, Request, Wire, status
from tests.cli.command import ROOT
from tests.daemon.host_nodes import (
    OFTEN,
    TREE,
    HostNode,
    add_gold_group,
    host_node,
)
from tests.daemon.test_insight import let_the_kubelet_pin
from tests.daemon.test_isolated_host import TOP, create, more
from tests.daemon.test_observability import free_port
from tests.monitoring.server import Target, target
from tests.real_host.patience import patience
from tests.verification.cgroup_trees import tree_with, v2

# The second CPU is not there; the others of the document are.
_DOCUMENT: Final = (
    TREE.replace("cpuset:0", "cpuset:0,99")
    + """\
  isolationAnnotations: true
  exclusivity: partition
  agent: {nodeResourceTopology: true}
  control:
    rdt: {enable: true}
    blockio: {enable: true, classes: {slow: [{Weight: 50}]}}
"""
)
_CLASSES: Final = {"rdtclass.resource-policy.nri.io/pod": "gold"}
_ISOLATED: Final = {"irq-load-balancing.crio.io": "disable"}
_KINDS: Final = {
    *("/nodes", "config.nri/topologyawarepolicies", "config.nri/noderesourcemanagers"),
    *("criresmgr.intel.com/adjustments", "topology.node.k8s.io/noderesourcetopologies"),
}
_RETRY: Final = 0.5  # seconds between two tries of the kubelet
_MEMORY: Final = "Node {0} MemTotal: 16777216 kB\nNode {0} MemUsed: 1048576 kB\n"
_TIMES: Final = "".join(f"cpu{cpu} 100 0 0 900 0 0 0 0 0 0\n" for cpu in range(8))


@asynccontextmanager
async def demo_node(folder: Path) -> AsyncIterator[Target]:
    """Run ``nri-resmgr demo`` until the end of the block, after its workload."""
    endpoint = f"127.0.0.1:{free_port()}"
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("NRI_RESMGR")}
    own = {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "nri_resmgr", "demo", "--machine", "2s2n2c2t"),
        "--stay",
        env={**inherited, **own, "NRI_RESMGR_HTTP_ENDPOINT": endpoint},
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(patience(60)):
            await process.stdout.readuntil(b"Ctrl-C ends it.\n")
        yield target(endpoint, "demo", "nri-resmgr")
    finally:
        # Its plugin, too.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


@asynccontextmanager
async def full_node(
    folder: Path, cluster: FakeApiServer, access: Access
) -> AsyncIterator[tuple[Target, Target]]:
    """Run a daemon with every feature, and its agent, both with some trouble."""
    socket = folder / "control.sock"
    _prepare(cluster)
    flags = (
        *("--http-endpoint", "127.0.0.1:0", "--control-socket", str(socket)),
        *("--apply-updates", "cgroup", *OFTEN),
    )
    async with host_node(folder, _DOCUMENT, _add_cgroups) as node:
        _add_kernel(node.host)
        async with (
            node.running(*flags),
            agent_process(folder, kubeconfig_of(access, folder), *ENDPOINTS) as agent,
        ):
            await _run(node, "web", 2, _ISOLATED)
            await _run(node, "gold", 1, _CLASSES)
            await agent.until(
                "/metrics", lambda _, text: "agent_topology_published 1" in text
            )
            daemon = (await node.says("http.listening"))["endpoint"]
            served = (await agent.line("http.listening"))["endpoint"]
            kubelet = asyncio.create_task(_insist(node))
            try:
                yield target(daemon, NODE, "nri-resmgr"), target(served, NODE, "agent")
            finally:
                kubelet.cancel()


def _prepare(cluster: FakeApiServer) -> None:
    cluster.kinds = set(_KINDS)
    cluster.put("/api/v1/nodes", {"metadata": {"name": NODE}})

    async def forbid(request: Request, wire: Wire) -> bool:
        if "adjustments" not in request.path and "status" not in request.path:
            return False
        cluster.faults.append(forbid)  # for good
        await wire.answer(403, status(403, "Forbidden", "User cannot do that"))
        return True

    cluster.faults = [forbid]


def _add_cgroups(files: dict[str, str]) -> None:
    more(files)
    files |= {f"{TOP}/cgroup.procs": "1", f"{TOP}/io.weight": "default 100"}


def _add_kernel(host: Path) -> None:
    add_gold_group(host)
    let_the_kubelet_pin(host)
    (host / "proc/stat").write_text(_TIMES)
    for number in range(2):
        path = host / f"sys/devices/system/node/node{number}/meminfo"
        path.write_text(_MEMORY.format(number))


async def _insist(node: HostNode) -> None:
    """Try again and again to run a pod that the node refuses, as a kubelet does."""
    huge = Workload("huge", QosClass.GUARANTEED, 64000)
    while True:
        with pytest.raises(PluginRefused):
            await node.in_cgroup(huge)
        await asyncio.sleep(_RETRY)


async def _run(
    node: HostNode, name: str, cpus: int, annotations: dict[str, str]
) -> None:
    await create(node, name, annotations, cpus=cpus)
    # No kernel makes what is written effective: the container is confined.
    trees = v2(f"kubepods/pod1/{name}", "0-7") | _more_files(f"kubepods/pod1/{name}")
    tree_with(node.host, trees)
    await node.runtime.start_container(name)


def _more_files(path: str) -> dict[str, str]:
    return {
        f"{path}/cpu.max": "200000 100000",
        f"{path}/cpuset.cpus.exclusive": "",
        f"{path}/cpuset.cpus.partition": "member",
    }
