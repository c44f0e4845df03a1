"""What a document says of the object that schedulers read."""

from __future__ import annotations

import pytest

from nri_resmgr.config import BadSetting
from nri_resmgr.config.policy_config import NodeTopologyUse
from nri_resmgr.policies import parse_config
from nri_resmgr.policies.find import BUILT_IN

ON = "agent: {nodeResourceTopology: true}"
ALL = (
    "agent: {nodeResourceTopology: true, nodeResourceTopologyZones: pools, "
    "nodeResourceTopologyFingerprint: true, nodeResourceTopologyForce: true}"
)
POOLS = {"StaticPoolsPolicy": 'pools: [{name: shared, cpuLists: [{cpus: "1-3"}]}]'}


def used(kind: str, spec: str) -> NodeTopologyUse | None:
    more = f", {POOLS[kind]}" if kind in POOLS else ""
    text = f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {{{spec}{more}}}"
    return parse_config(text).node_topology


@pytest.mark.parametrize("kind", sorted(BUILT_IN))
def test_documents_of_all_kinds_may_enable_the_object(kind: str) -> None:
    assert used(kind, "allowLoss: false") is None
    assert used(kind, ON.replace("true", "false")) is None
    assert used(kind, ON) == NodeTopologyUse()
    assert used(kind, ALL) == NodeTopologyUse(pools=True, fingerprint=True, force=True)


def test_containers_are_shown_in_zones_of_balloons() -> None:
    shown = f"{ON}, showContainersInNrt: true"
    of_type = (
        f"{ON}, balloonTypes: [{{name: a, showContainersInNrt: true}}, {{name: b}}]"
    )

    assert used("BalloonsPolicy", shown) == NodeTopologyUse(pools=True, containers=True)
    assert used("BalloonsPolicy", of_type) == NodeTopologyUse(
        pools=True, container_types=("a",)
    )


def test_zones_of_nodes_alone_show_no_containers() -> None:
    text = (
        "apiVersion: config.nri/v1alpha1\nkind: BalloonsPolicy\nspec: {agent: "
        "{nodeResourceTopology: true, nodeResourceTopologyZones: nodes}, "
        "showContainersInNrt: true}"
    )

    found = parse_config(text)

    assert found.node_topology is not None
    assert not found.node_topology.pools
    assert found.ineffective == ("$.spec.showContainersInNrt",)


def test_a_bad_value_is_named() -> None:
    with pytest.raises(
        BadSetting, match=r"nodeResourceTopologyZones: .*nodes or pools"
    ):
        used("StaticPolicy", "agent: {nodeResourceTopologyZones: sockets}")
