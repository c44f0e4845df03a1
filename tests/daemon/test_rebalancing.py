"""Containers of a real daemon move to better places, at request and by themselves."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.cli.workload import Workload
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import QosClass
from tests.cli.command import nri_resmgr
from tests.daemon.daemon_process import RunningDaemon, daemon

pytestmark = pytest.mark.process

DOCUMENT: Final = """\
apiVersion: config.nri/v1alpha1
kind: {kind}
spec: {spec}
"""
LARGE: Final = [Workload(name, QosClass.GUARANTEED, 4000) for name in ("x", "y", "z")]
SMALL: Final = [Workload(name, QosClass.BEST_EFFORT) for name in ("a", "b")]


@asynccontextmanager
async def at_work(
    folder: Path, kind: str = "TopologyAwarePolicy", spec: str = "{}"
) -> AsyncIterator[RunningDaemon]:
    """Run two containers on the only CPUs that were free, and free all others."""

    def write_times(root: Path) -> None:
        (root / "proc").mkdir(exist_ok=True)
        rows = (f"cpu{cpu} 1 0 0 9 0 0 0 0 0 0\n" for cpu in range(16))
        (root / "proc/stat").write_text("".join(rows))

    config = folder / "config.yaml"
    config.write_text(DOCUMENT.format(kind=kind, spec=spec))
    socket = ("--control-socket", str(folder / "run" / "control.sock"))
    flags = (*socket, "--config-file", str(config))
    machine = parse_spec("1s4n4c1t")
    async with daemon(folder, machine, *flags, before=write_times) as running:
        for workload in (*LARGE, *SMALL):
            await running.place(workload)
        for workload in LARGE:
            await running.runtime.stop_pod(workload.pod.id)
        await running.line("control.listening")
        yield running


async def ask(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {"NRI_RESMGR_CONTROL_SOCKET": str(folder / "run" / "control.sock")}
    return await asyncio.to_thread(nri_resmgr, "rebalance", *words, env=env)


async def test_containers_move_at_request(tmp_path: Path) -> None:
    async with at_work(tmp_path) as running:
        tried = await ask(tmp_path, "--dry-run")
        first = await ask(tmp_path, "--at-most", "1")
        second = await ask(tmp_path, "-o", "json")
        third = await ask(tmp_path)
        # Nothing is logged where nothing moves.
        await running.line("node.rebalanced", 1)
        lines = [one for one in running.lines() if one["event"] == "node.rebalanced"]

    done = (tried, first, second, third)
    assert [(one.returncode, one.stderr) for one in done] == [(0, "")] * 4
    a, b = "default/a/a", "default/b/b"
    was = "it was in NUMA node #0"
    why = f"the fewest containers are there; {was}"
    assert tried.stdout.splitlines() == [
        "container    pool          CPUs  nodes  why",
        f"{a}  NUMA node #1  4-7   0-1    {why}",
        f"{b}  NUMA node #2  8-11  0,2    the most CPU was free there; {was}",
        "2 containers would move",
    ]
    assert first.stdout.splitlines() == [
        "container    pool          CPUs  nodes  why",
        f"{a}  NUMA node #1  4-7   0-1    {why}",
        "1 container moved; in force: no update is pending",
    ]
    found = json.loads(second.stdout)
    assert [one["title"] for one in found["containers"]] == [b]
    assert third.stdout == "no container has a better place\n"
    assert [line["updates"] for line in lines] == [1, 1]


async def test_containers_move_at_intervals(tmp_path: Path) -> None:
    spec = "{rebalance: {interval: 1s, atMost: 1}}"
    async with at_work(tmp_path, spec=spec) as running:
        first = await running.line("node.rebalanced")
        second = await running.line("node.rebalanced", 1)

    assert (first["updates"], second["updates"]) == (1, 1)


async def test_a_policy_without_rebalancing_refuses_the_command(tmp_path: Path) -> None:
    async with at_work(tmp_path, "NonePolicy"):
        done = await ask(tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "nri-resmgr: NonePolicy does not rebalance: its containers stay where they "
        "are\n"
    )


@pytest.mark.parametrize("number", ["0", "-1", "10001", "99999999999999999999"])
async def test_another_number_is_refused(tmp_path: Path, number: str) -> None:
    async with at_work(tmp_path):
        done = await ask(tmp_path, "--at-most", number)

    assert done.returncode == 2
    assert done.stderr == f"nri-resmgr: at-most={number}: expected 1 to 10000\n"
