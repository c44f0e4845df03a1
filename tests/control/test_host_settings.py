"""The host's own settings, in the daemon's answers and in what commands print."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from nri_resmgr.cli.explain import render_explanation
from nri_resmgr.cli.render_status import render_status
from nri_resmgr.control.client import Client
from tests.control.daemon_parts import ask
from tests.control.json_schema import mistakes
from tests.daemon.host_nodes import (
    BALLOONS,
    CLASS_KEY,
    IRQ_KEY,
    NIC,
    OFTEN,
    PLAIN,
    POLICIES,
    TREE,
    HostNode,
    fast,
    host_node,
    quiet,
)

pytestmark = pytest.mark.process

CLAIM = '{"claim": ["*eth0*"]}'


def client(node: HostNode) -> Client:
    return Client(str(node.folder / "control.sock"))


def running(node: HostNode, *flags: str) -> Any:
    return node.running("--control-socket", str(node.folder / "control.sock"), *flags)


def setting(what: str, wanted: str, found: str = "") -> dict[str, Any]:
    return {"what": what, "wanted": [wanted], "found": [found or wanted]}


HOST: Final[dict[str, Any]] = {
    "applied": True,
    "problem": "",
    "classes": [
        {
            "name": "fast",
            "cpus": "2,6",
            "containers": ["default/web/web"],
            "settings": [
                setting("scaling_governor", "performance"),
                setting("energy_performance_preference", "performance"),
                setting("scaling_min_freq", "2000000"),
                setting("POLL disable", "0"),
                setting("C1 disable", "0"),
                setting("C1E disable", "0"),
                setting("C6 disable", "1"),
            ],
        },
        {
            "name": "quiet",
            "cpus": "0-1,3-5,7",
            "containers": [],
            "settings": [setting("scaling_max_freq", "1200000")],
        },
    ],
    "isolated": [],
    "files": {
        "wanted": 6 + 14 + 1,
        "written": 8 + 6 + 1 + 2,
        "restored": 2,
        "failures": 0,
        "failing": [],
        "drifting": [],
        "abandoned": [],
    },
    "interrupts": {
        "placed": {"31": "2,6"},
        "unplaced": [],
        "refused": [],
        "irqbalance": 0,
        "notUpdated": "",
    },
    "speedSelect": [],
}
"""The answer about a container with two CPUs of its own and an interrupt."""


async def test_classes_are_reported_with_owners_and_values(tmp_path: Path) -> None:
    async with host_node(tmp_path, TREE) as node, running(node):
        await node.becomes(quiet())
        await node.pod("web", 2, {IRQ_KEY: CLAIM})
        await node.becomes(quiet(2, 6) | fast(2, 6) | {NIC: "2,6"})
        state = await ask(client(node), "/v1/state")
        explained = await ask(client(node), "/v1/explain", pod="web")

    assert mistakes(state, "State") == mistakes(explained, "Explanation") == []
    assert state["host"] == HOST
    assert explained["containers"][0]["host"] == [
        "CPU 2,6: CPU class fast, as exclusive CPUs",
        f"interrupts by annotation {IRQ_KEY}",
    ]
    status = render_status(state)
    assert "host           21 files set, 1 interrupt placed" in status
    assert "quiet      0-1,3-5,7  0           scaling_max_freq" in status
    assert "  host     CPU 2,6: CPU class fast" in render_explanation(explained)


@pytest.mark.parametrize(
    ("document", "annotations", "why"),
    [
        pytest.param(
            TREE,
            {CLASS_KEY: "quiet"},
            [f"CPU 2: CPU class quiet, by annotation {CLASS_KEY}"],
            id="an annotation",
        ),
        pytest.param(
            BALLOONS,
            {},
            ["CPU 3: CPU class fast, by its balloon type, quick"],
            id="a balloon type",
        ),
        pytest.param(PLAIN, {}, [], id="no classes"),
    ],
)
async def test_why_a_container_is_in_a_class(
    tmp_path: Path, document: str, annotations: dict[str, str], why: list[str]
) -> None:
    async with host_node(tmp_path, document) as node, running(node):
        await node.pod("web", 1, annotations)
        await node.says("control.listening")
        explained = await ask(client(node), "/v1/explain", pod="web")

    assert explained["containers"][0]["host"] == why


async def test_drift_of_host_settings_is_reported_and_repaired(tmp_path: Path) -> None:
    path = f"{POLICIES}/policy3/scaling_max_freq"
    flags = (*OFTEN, "--verify-repair", "no")
    async with host_node(tmp_path, TREE) as node:
        async with running(node, *flags):
            await node.becomes(quiet())
            node.set(path, "900000")
            await node.says("control.listening")
            drift = await node.says("host.drifted")
            host = (await ask(client(node), "/v1/state"))["host"]
        node.set(path, "3800000")
        async with running(node, *OFTEN):
            await node.becomes(quiet())
            node.set(path, "900000")
            await node.says("host.drifted")
            await node.becomes(quiet())

    assert drift["why"].startswith(f"{path} has '900000' instead of '1200000'")
    assert host["files"]["drifting"] == [
        {"path": path, "wanted": "1200000", "found": "900000"}
    ]
    assert host["classes"][0]["settings"] == [
        {
            "what": "scaling_max_freq",
            "wanted": ["1200000"],
            "found": ["1200000", "900000"],
        }
    ]
