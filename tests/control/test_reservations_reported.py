"""What is shown of pods that are placed as a whole, before their containers come."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nri_resmgr.cli.explain import render_explanation
from nri_resmgr.cli.render_status import render_status
from nri_resmgr.control.client import Client, QueryRefused
from tests.control.daemon_parts import Parts, ask, asking, make_parts
from tests.control.json_schema import mistakes

MACHINE = "1s2n4c1t"
DOCUMENTS = {
    "TopologyAwarePolicy": 'placePods: strict, reservedResources: {cpu: "cpuset:0"}',
    "StaticPolicy": "placePods: strict",
    "StaticPlusPolicy": "placePods: soft",
    "BalloonsPolicy": "placePods: strict, reservedResources: {cpu: 1}",
}
POOLS = {
    "TopologyAwarePolicy": "NUMA node #1",
    "StaticPolicy": "exclusive CPUs",
    "StaticPlusPolicy": "exclusive CPUs",
    "BalloonsPolicy": "default[0]",
}
WEB = {"cpu": "2", "memory": "1Gi"}
ANNOUNCED = {"web": {"requests": WEB, "limits": WEB}, "log": {"requests": WEB}}


def announce(parts: Parts) -> None:
    """Create a pod that announces two containers, which do not come yet."""
    text = json.dumps({"containers": ANNOUNCED})
    annotations = {"noderesource.dev/resources": text}
    pod = msgspec.structs.replace(parts.pod("shop"), annotations=annotations)
    parts.policy.run_pod_sandbox(pod)


async def events(client: Client) -> list[dict[str, Any]]:
    return (await asyncio.to_thread(lambda: list(client.lines("/v1/events"))))[1:]


@pytest.mark.parametrize("kind", DOCUMENTS)
async def test_reservations_are_shown_until_their_containers_are_created(
    tmp_path: Path, kind: str
) -> None:
    document = (
        f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {{{DOCUMENTS[kind]}}}"
    )
    parts = make_parts(MACHINE, document)
    announce(parts)
    async with asking(parts, tmp_path) as client:
        state = await ask(client, "/v1/state")
        explained = await ask(client, "/v1/explain", pod="shop")
        one = await ask(client, "/v1/explain", pod="shop", container="web")
        *_, placed = await events(client)
        parts.policy.stop_pod_sandbox(parts.pod("shop"))
        after = await ask(client, "/v1/state")
        *_, returned = await events(client)
        with pytest.raises(QueryRefused, match="no running or recently removed"):
            await ask(client, "/v1/explain", pod="shop")

    assert mistakes(state, "State") == mistakes(explained, "Explanation") == []
    assert mistakes(placed, "event") == mistakes(returned, "event") == []
    log, web = state["reservations"]
    assert (web["namespace"], web["pod"], web["name"]) == ("shop", "shop", "web")
    assert (web["pool"], web["source"]) == (POOLS[kind], "annotation")
    assert web["request"] == {"cpu": 2000, "memory": 1 << 30}
    assert explained["reservations"] == [log, web]
    assert (explained["containers"], one["reservations"]) == ([], [web])
    assert after["reservations"] == []

    rules = {row["title"]: row["rule"] for row in placed["containers"]}
    assert rules == {
        "shop/shop": "pod-placed",
        "shop/shop/log": "place-reserved",
        "shop/shop/web": "place-reserved",
    }
    rules = {row["title"]: row["rule"] for row in returned["containers"]}
    assert rules == dict.fromkeys(("shop/shop/log", "shop/shop/web"), "place-returned")
    cpus = f"CPUs {web['cpus']}" if web["cpus"] else "a part of the shared CPUs"
    assert render_explanation(one).splitlines()[:2] == [
        "shop/shop/web (not created yet)",
        f"  reserved {cpus}; memory of nodes {web['mems'] or 'any'}",
    ]
    (row,) = (
        line
        for line in render_status(state).splitlines()
        if line.startswith("shop/shop/web ")
    )
    assert POOLS[kind] in row
