"""Isolated containers, in the daemon's answers and in what commands print."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

import pytest

from nri_resmgr.app.observers.policy_in_force import snapshot_of
from nri_resmgr.cli.explain import render_explanation
from nri_resmgr.cli.render_status import render_status
from nri_resmgr.control.client import Client
from nri_resmgr.control.isolation import isolation_sentences
from tests.app.node import running_node
from tests.control.daemon_parts import ask
from tests.control.json_schema import mistakes
from tests.daemon.host_nodes import host_node
from tests.daemon.test_isolated_host import ALLOWED, create, more, start

ASKED: Final = {
    "cpu-load-balancing.crio.io": "disable",
    "irq-load-balancing.crio.io/web": "housekeeping",
    "cpu-c-states.crio.io": "max_latency:10",
}
INEFFECTIVE: Final = "the kernel has no cpuset.cpus.exclusive, Linux 6.7 has"
ON: Final = "{isolationAnnotations: true, reserveWholeCores: true}"
WAITING: Final = "its cgroup does not exist yet"
TABLE: Final = f"""
isolated container  exclusive  what            setting         CPUs     problem
default/web/web     2-3,6-7    load-balancing  disable         2-3,6-7  {INEFFECTIVE}
                               interrupts      housekeeping    3,7      -
                               c-states        max_latency:10  2-3,6-7  -
"""


def row(why_not: str) -> dict[str, Any]:
    """The answer about a container with `ASKED` on two whole cores."""
    rows = (
        ("load-balancing", "disable", "2-3,6-7", why_not),
        ("interrupts", "housekeeping", "3,7", ""),
        ("c-states", "max_latency:10", "2-3,6-7", ""),
    )
    names = ("what", "setting", "cpus", "problem")
    isolations = [dict(zip(names, one, strict=True)) for one in rows]
    return {
        "container": "default/web/web",
        "cpus": "2-3,6-7",
        "isolations": isolations,
    }


async def isolated(client: Client, why_not: str) -> dict[str, Any]:
    """Return the state, once a container is reported as so isolated."""
    async with asyncio.timeout(8):
        while True:
            state = await ask(client, "/v1/state")
            if (host := state["host"]) and host["isolated"] == [row(why_not)]:
                return state
            await asyncio.sleep(0.05)


async def test_isolation_is_reported_with_what_is_not_in_force(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "control.sock")
    client = Client(path)
    flags = ("--control-socket", path)
    async with host_node(tmp_path, ALLOWED, more) as node, node.running(*flags):
        await create(node, "web", ASKED, cpus=4)
        await node.says("control.listening")
        await isolated(client, WAITING)
        await start(node, "web", without="cpuset.cpus.exclusive")
        state = await isolated(client, INEFFECTIVE)
        explained = await ask(client, "/v1/explain", pod="web")

    assert mistakes(state, "State") == mistakes(explained, "Explanation") == []
    assert TABLE in render_status(state)
    assert explained["containers"][0]["host"] == [
        (
            "CPU 2-3,6-7: no load balancing, by annotation cpu-load-balancing.crio.io; "
            f"not in force: {INEFFECTIVE}"
        ),
        (
            "CPU 3,7: no interrupts except claimed ones, by annotation "
            "irq-load-balancing.crio.io/web"
        ),
        (
            "CPU 2-3,6-7: only idle states with an exit latency of at most 10 "
            "microseconds, by annotation cpu-c-states.crio.io"
        ),
    ]
    assert "  host     CPU 3,7: no interrupts" in render_explanation(explained)


@pytest.mark.parametrize(
    ("spec", "cpus", "annotations", "reported"),
    [
        pytest.param(
            ON,
            2,
            {"cpu-quota.crio.io": "disable", "cpu-shared.crio.io": "enable"},
            [
                "no CPU quota, by annotation cpu-quota.crio.io",
                (
                    "CPU 2-3,6-7: shared CPUs in addition to the exclusive ones, no "
                    "CPU quota, by annotation cpu-shared.crio.io"
                ),
            ],
            id="shared CPUs besides",
        ),
        pytest.param(
            ON,
            2,
            {"cpu-c-states.crio.io": "disable"},
            [
                (
                    "CPU 1,5: no idle states except polling, "
                    "by annotation cpu-c-states.crio.io"
                )
            ],
            id="no idle states",
        ),
        pytest.param(
            ON,
            2,
            {"irq-load-balancing.crio.io": "housekeeping"},
            [
                (
                    "CPU none: no interrupts except claimed ones, by annotation "
                    "irq-load-balancing.crio.io"
                )
            ],
            id="all of its CPUs are of the first core",
        ),
        pytest.param(
            ON,
            1.5,
            {"cpu-quota.crio.io/web": "disable", "cpu-c-states.crio.io": "disable"},
            [
                (
                    "not isolated in spite of cpu-quota.crio.io/web, "
                    "cpu-c-states.crio.io: it has no exclusive CPUs"
                )
            ],
            id="no whole CPUs",
        ),
        pytest.param(
            "{}",
            2,
            {"cpu-quota.crio.io": "disable"},
            [
                (
                    "not isolated in spite of cpu-quota.crio.io: "
                    "spec.isolationAnnotations is false"
                )
            ],
            id="not allowed",
        ),
        pytest.param(
            ON, 2, {"cpu-quota.crio.io": "enable"}, [], id="it is left out of it"
        ),
        pytest.param(ON, 2, {}, [], id="it asks for nothing"),
    ],
)
async def test_why_a_container_is_isolated_or_not(
    tmp_path: Path,
    spec: str,
    cpus: float,
    annotations: dict[str, str],
    reported: list[str],
) -> None:
    async with running_node(tmp_path, machine="1s1n4c2t", spec=spec) as node:
        await node.run("web", cpus, annotations)
        daemon: Any = Namespace(
            policy=node.plugin, host=None, verification=lambda: None
        )
        spec_of_web = node.plugin.state.ledger.entries["web"].spec
        found = list(
            isolation_sentences(spec_of_web, snapshot_of(daemon.policy), daemon)
        )

    assert found == reported
