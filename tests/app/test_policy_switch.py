"""Another kind of document on a running node, with containers that go on."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.config import API_VERSION, BadSetting, PolicyConfig, parse_config
from tests.app.node import Node, running_node, until

TYPES: Final = (
    "{balloonTypes: [{name: all, namespaces: ['*'], preferNewBalloons: true}]}"
)


def balloons(spec: str) -> PolicyConfig:
    return parse_config(
        f"apiVersion: {API_VERSION}\nkind: BalloonsPolicy\nspec: {spec}"
    )


def places(node: Node) -> dict[str, str]:
    return {name: node.pinned(name)[0] for name in node.runtime.world.containers}


async def test_containers_keep_their_cpus_in_balloons_and_back(tmp_path: Path) -> None:
    async with running_node(tmp_path, "2s4c1t") as node:
        await node.run("db", 2)
        await node.run("web", 1)
        before = places(node)
        node.plugin.reconfigure(balloons(TYPES))
        in_balloons = places(node)
        kind = node.plugin.policy.kind
        node.plugin.reconfigure(parse_config(""))

        assert kind == "BalloonsPolicy"
        assert in_balloons == places(node) == before


async def test_who_shared_cpus_gets_a_balloon(tmp_path: Path) -> None:
    async with running_node(tmp_path, "1s1n4c1t") as node:
        await node.run("log", 0.5)
        at_first = places(node)
        node.plugin.reconfigure(balloons(TYPES))
        await until(lambda: places(node) != at_first)

        assert (at_first, places(node)) == ({"log": "1-3"}, {"log": "1"})


async def test_a_switch_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    async with running_node(tmp_path, "1s1n4c1t") as node:
        await node.run("web", 1)
        before, state = places(node), node.plugin.state
        with pytest.raises(BadSetting, match="balloon big"):
            node.plugin.reconfigure(
                balloons("{balloonTypes: [{name: big, minBalloons: 1, minCPUs: 9}]}")
            )

        assert node.plugin.policy.kind == "TopologyAwarePolicy"
        assert (places(node), node.plugin.state) == (before, state)
