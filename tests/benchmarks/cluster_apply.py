"""``python -m tests.benchmarks.cluster_apply``: from ``kubectl apply`` to the kernel.

A real API server, an agent and a daemon as processes, and containers that share CPUs, a
sleeping process each in a cgroup of its own. The object `default` is applied again and
again, with the one and the other half of the CPUs. What is measured is when the kernel
allows exactly those to all of the processes (sched_getaffinity(2)); then the cpuset
files of all are read.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import attrs

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.spool import CONFIGURATION
from nri_resmgr.testing import Runtime, RuntimeOptions, plugin_process
from nri_resmgr.values import CpuSet
from tests.benchmarks.cluster import KIND, Cluster, cluster, document
from tests.benchmarks.interrupts import orderly_end
from tests.benchmarks.real_cgroups import CgroupTree
from tests.benchmarks.replies import LEVEL, Node
from tests.benchmarks.tables import busy_machine, print_cells, print_header

APPLIES: Final = 100
CONTAINERS: Final = 100
WARM_UP: Final = 2  # applies that are not counted: kubectl's cache is made

_NAME: Final = "node-a"
_IDENTITY: Final = "90-resource-policy"
# The one before has had its second, in which a document has to wait; and its report.
_PAUSE: Final = (1.2, 2.2)  # seconds
_LOOK: Final = 0.002  # seconds between two looks at what is allowed
_PATIENCE: Final = 60.0  # seconds
_MS: Final = 1e3


@attrs.frozen
class Times:
    """Milliseconds of one apply.

    Attributes:
        kubectl: From the start of the command to its end.
        in_force: From its start until all containers have the CPUs.
        after: From its end until then; below 0 if they had them before.
        handed_over: From its start until the agent has written the document.
        daemon: From there until all containers have the CPUs.
    """

    kubectl: float
    in_force: float
    after: float
    handed_over: float
    daemon: float


_ROWS: Final = (
    ("from the start of `kubectl apply` to in force", "in_force", "≤ 1000, ≤ 2000"),
    ("`kubectl apply` alone", "kubectl", ""),
    ("from its end to in force", "after", ""),
    ("from its start to the document in the folder", "handed_over", ""),
    ("from there to in force", "daemon", ""),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--applies", type=int, default=APPLIES, help="(%(default)s)")
    options = parser.parse_args()
    print(f"Machine: {busy_machine()}\n", flush=True)
    machine = read_machine(HostTree("/"))
    name = f"nri-resmgr-bench-{os.getpid()}"
    with orderly_end(), cluster() as cluster_, CgroupTree(name) as tree:
        node = Node(tree, machine, CONTAINERS)
        gc.collect()
        gc.freeze()
        halves = _halves(machine.online)
        found = asyncio.run(_measure(cluster_, node, halves, options.applies))
    what = f"{options.applies} applies, {CONTAINERS} containers; ms"
    print_header(what, "p50", "p99", "longest", "aims, p50 and p99")
    for row, attribute, aims in _ROWS:
        figures = [getattr(one, attribute) for one in found]
        last = statistics.quantiles(figures, n=100, method="inclusive")[-1]
        columns = (statistics.median(figures), last, max(figures))
        print_cells(row, *(f"{figure:.0f}" for figure in columns), aims)


def _halves(online: CpuSet) -> tuple[CpuSet, CpuSet]:
    first = online.lowest(len(online) // 2)
    return first, online - first


async def _measure(
    where: Cluster, node: Node, halves: tuple[CpuSet, CpuSet], applies: int
) -> list[Times]:
    where.make_node(_NAME)
    with tempfile.TemporaryDirectory(prefix="nri-apply-") as name:
        folder = Path(name)
        (folder / "spool").mkdir()
        async with (
            Runtime(folder, LEVEL, options=RuntimeOptions(records=False)) as at,
            _daemon(at, node, folder),
            _agent(where, folder),
        ):
            times = []
            for number in range(WARM_UP + applies):
                times.append(await _apply(where, node, halves[number % 2], folder))
                await asyncio.sleep(random.uniform(*_PAUSE))  # noqa: S311 - spread
    return times[WARM_UP:]


async def _apply(where: Cluster, node: Node, cpus: CpuSet, folder: Path) -> Times:
    file = folder / "default.json"
    file.write_text(document(cpus))
    begun = time.time()  # also the clock of files
    command = asyncio.create_task(asyncio.to_thread(_applied, where, file))
    await node.until_all_have(cpus, _PATIENCE, _LOOK)
    in_force = time.time()
    ended = await command
    found = set(node.cpus_files())
    assert found == {str(cpus)}, f"files have CPUs {sorted(found)}, not {cpus}"
    written = (folder / "spool" / CONFIGURATION).stat().st_mtime
    return Times(
        kubectl=_MS * (ended - begun),
        in_force=_MS * (in_force - begun),
        after=_MS * (in_force - ended),
        handed_over=_MS * (written - begun),
        daemon=_MS * (in_force - written),
    )


def _applied(where: Cluster, file: Path) -> float:
    where.apply(file)
    return time.time()


@asynccontextmanager
async def _daemon(at: Runtime, node: Node, folder: Path) -> AsyncIterator[None]:
    for pod, container in node.shared:
        at.world.pods[pod.id] = pod
        at.world.containers[container.id] = container
    command = _daemon_command(at.socket_path, folder)
    async with plugin_process(at, *command, identity=_IDENTITY):
        await node.until_all_share_all()
        yield


def _daemon_command(socket: Path, folder: Path) -> Sequence[str]:
    return (
        *(sys.executable, "-m", "nri_resmgr", "run", "--nri-socket", str(socket)),
        *("--spool", str(folder / "spool"), "--state-dir", str(folder / "state")),
        *("--run-dir", str(folder / "run")),
        *("--control-socket", str(folder / "control")),
        *("--log-to", str(folder / "daemon.log")),
    )


@asynccontextmanager
async def _agent(where: Cluster, folder: Path) -> AsyncIterator[None]:
    kubeconfig = where.account.kubeconfig(folder / "agent.yaml")
    with (folder / "agent.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "nri_resmgr", "agent", "--kinds", KIND),
            *("--node-name", _NAME, "--kubeconfig", str(kubeconfig)),
            *("--spool", str(folder / "spool")),
            *("--control-socket", str(folder / "control")),
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        yield
        assert process.returncode is None, (folder / "agent.log").read_text()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


if __name__ == "__main__":
    main()
