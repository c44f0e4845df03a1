"""Adjustments by a real daemon: effective at once, kept over restarts, and undone."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from nri_resmgr.control.client import Client
from nri_resmgr.spool import ADJUSTMENTS
from tests.control.daemon_parts import ask
from tests.control.json_schema import mistakes
from tests.daemon.adjustable import CGROUPS, GOLD, add_kernel, create, limits
from tests.daemon.host_nodes import PLAIN, HostNode, host_node
from tests.daemon.spooled import hand_over_adjustments, hand_over_configuration, spool
from tests.waiting import until

pytestmark = pytest.mark.process

DOCUMENT = f"""{PLAIN}\
  control:
    rdt: {{enable: true}}
    blockio: {{enable: true, classes: {{slow: [{{Weight: 50}}]}}}}
"""


def adjustment(name: str, pod: str, cpu: str = "2500m") -> str:
    return f"""\
- apiVersion: criresmgr.intel.com/v1alpha1
  kind: Adjustment
  metadata: {{name: {name}, namespace: kube-system, uid: uid-{name}, generation: 4}}
  spec:
    scope: [{{nodes: [worker-*], containers: [{{key: pod/name, operator: Matches,
      values: ["{pod}"]}}]}}]
    resources: {{limits: {{cpu: {cpu}, memory: 64Mi}}}}
    classes: {{rdt: gold, blockio: slow}}
"""


ADJUSTED = ("250000 100000", str(64 << 20))


@asynccontextmanager
async def adjustable(tmp_path: Path) -> AsyncIterator[tuple[HostNode, Client]]:
    """Set up a node with the spool folder in its flags."""
    socket = str(tmp_path / "run/control.sock")
    async with host_node(tmp_path, DOCUMENT) as node:
        add_kernel(node.host)
        hand_over_configuration(spool(tmp_path), DOCUMENT)
        yield node, Client(socket)


def flags(tmp_path: Path) -> tuple[str, ...]:
    socket = str(tmp_path / "run/control.sock")
    return "--spool", str(tmp_path / "spool"), "--control-socket", socket


async def test_adjustments_are_effective_at_once_and_undone(tmp_path: Path) -> None:
    async with adjustable(tmp_path) as (node, client):
        own, folder = limits(node.host), tmp_path / "spool"
        tasks = node.host / GOLD
        weight = node.host / CGROUPS / "web" / "io.weight"
        async with node.daemon(*flags(tmp_path)):
            await create(node.runtime, "web")
            hand_over_adjustments(folder, adjustment("a", "web"))
            await until(lambda: limits(node.host) == ADJUSTED)
            await until(lambda: tasks.read_text().strip() == "7")
            await until(lambda: weight.read_text() == "405\n")
            await node.says("control.listening")
            judged = await ask(client, "/v1/cluster")
            explained = await ask(client, "/v1/explain", pod="web")
            hand_over_adjustments(folder, "[]\n")
            await until(lambda: limits(node.host) == own)
            await until(lambda: weight.read_text() == "100\n")

    assert mistakes(judged, "Cluster") == mistakes(explained, "Explanation") == []
    assert judged["adjustments"]["verdict"] == "accepted"
    named = {"kind": "Adjustment", "name": "a", "namespace": "kube-system"}
    assert judged["adjustments"]["objects"] == [
        {
            "object": named | {"uid": "uid-a", "generation": 4},
            "verdict": "accepted",
            "errors": {},
            "containers": ["web"],
        }
    ]
    (found,) = explained["containers"]
    container = found["container"]
    assert (container["source"], container["adjustment"]) == ("adjustment", "a")
    assert "RDT class gold, by adjustment a" in found["host"]


async def test_a_killed_daemon_finds_them_again(tmp_path: Path) -> None:
    async with adjustable(tmp_path) as (node, _):
        own, folder = limits(node.host), tmp_path / "spool"
        async with node.daemon(*flags(tmp_path)) as daemon:
            await create(node.runtime, "web")
            hand_over_adjustments(folder, adjustment("a", "web"))
            await until(lambda: limits(node.host) == ADJUSTED)
            await until(lambda: '"adjusted"' in node.checkpoint.read_text())
            daemon.send_signal(signal.SIGKILL)
            await daemon.wait()
        async with node.daemon(*flags(tmp_path)) as daemon:
            await node.says("adjustments.accepted")
            # They may be written again, and the file of a test is empty meanwhile.
            await until(lambda: limits(node.host) == ADJUSTED)
            daemon.send_signal(signal.SIGKILL)
            await daemon.wait()
        (folder / ADJUSTMENTS).unlink()  # deleted while no daemon runs
        async with node.daemon(*flags(tmp_path)):
            await until(lambda: limits(node.host) == own)


async def test_conflicts_are_reported_for_both(tmp_path: Path) -> None:
    text = "cache: conflicting adjustments for web:web: a,b"
    async with adjustable(tmp_path) as (node, client):
        folder = tmp_path / "spool"
        async with node.daemon(*flags(tmp_path)):
            await create(node.runtime, "web")
            both = adjustment("a", "web") + adjustment("b", "*")
            hand_over_adjustments(folder, both + adjustment("c", "db"))
            rejected = await node.says("adjustments.rejected")
            await node.says("control.listening")
            judged = (await ask(client, "/v1/cluster"))["adjustments"]
            before = limits(node.host)
            # Without the container there is no conflict; nothing else has changed.
            await node.runtime.stop_container("web")
            await node.says("adjustments.accepted")

    assert rejected["errors"] == judged["errors"] == {"web": text}
    ignored = "the whole update is ignored because of a, b; what was in force stays"
    errors = [{"web": text}, {"web": text}, {"request": ignored}]
    assert [one["errors"] for one in judged["objects"]] == errors
    assert before == ("max 100000", "max")


async def test_a_limit_below_the_usage_waits_for_it(tmp_path: Path) -> None:
    folder = spool(tmp_path)
    async with host_node(tmp_path, PLAIN) as node:
        add_kernel(node.host)
        usage = node.host / CGROUPS / "web" / "memory.current"
        usage.write_text(f"{65 << 20}\n")
        async with node.daemon("--spool", str(folder)):
            await create(node.runtime, "web")
            hand_over_adjustments(folder, adjustment("a", "web"))
            failed = await node.says("classes.failed")
            cpu, memory = limits(node.host)
            usage.write_text("1000\n")
            await until(lambda: limits(node.host) == ADJUSTED)

    assert (cpu, memory) == ("max 100000", "max")
    assert failed["why"] == "uses 68157440 bytes, more than its new limit of 67108864"


async def test_a_limit_that_waits_is_set_by_the_next_process(tmp_path: Path) -> None:
    folder = spool(tmp_path)
    async with host_node(tmp_path, PLAIN) as node:
        add_kernel(node.host)
        usage = node.host / CGROUPS / "web" / "memory.current"
        usage.write_text(f"{65 << 20}\n")
        async with node.daemon("--spool", str(folder)) as daemon:
            await create(node.runtime, "web")
            hand_over_adjustments(folder, adjustment("a", "web"))
            await node.says("classes.failed")
            await until(lambda: '"adjusted"' in node.checkpoint.read_text())
            daemon.send_signal(signal.SIGKILL)
            await daemon.wait()
        waiting = limits(node.host)
        usage.write_text("1000\n")
        async with node.daemon("--spool", str(folder)):
            await until(lambda: limits(node.host) == ADJUSTED)

    assert waiting == ("max 100000", "max")
