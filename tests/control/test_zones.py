"""The zones of NUMA nodes: sums over them are amounts of the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nri_resmgr.values.documents import JsonObject
from tests.control.daemon_parts import ask, asking, make_parts

KINDS = (
    "TopologyAwarePolicy",
    "BalloonsPolicy",
    "StaticPolicy",
    "StaticPlusPolicy",
    "StaticPoolsPolicy",
    "PodpoolsPolicy",
    "DynamicPoolsPolicy",
    "NonePolicy",
)


async def zones_on(machine: str, kind: str, folder: Path) -> list[JsonObject]:
    text = f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {{}}\n"
    async with asking(make_parts(machine, text), folder) as client:
        found: list[Any] = (await ask(client, "/v1/zones"))["nodes"]
    return found


@pytest.mark.parametrize("kind", KINDS)
async def test_a_cpu_of_emulated_nodes_counts_once(kind: str, tmp_path: Path) -> None:
    one = await zones_on("1s4c1t memory=8Gi", kind, tmp_path / "one")
    four = await zones_on("1s4c1t memory=8Gi emulated=4", kind, tmp_path / "four")

    assert (len(one), len(four)) == (1, 4)
    assert four[0]["cpu"] == one[0]["cpu"]
    nothing = {"capacity": 0, "allocatable": 0, "available": 0}
    assert [node["cpu"] for node in four[1:]] == [nothing] * 3
    for key in ("capacity", "allocatable", "available"):
        assert sum(node["memory"][key] for node in four) == one[0]["memory"][key]
