"""Which pool is chosen for the hints of a container."""

from __future__ import annotations

import pytest

from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.policy.topology_aware.choose import candidates
from nri_resmgr.policy.topology_aware.state import NodeView
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import CpuSet, NodeSet
from tests.policy.topology_aware.choosing import (
    Tenant,
    asked,
    burstable,
    guaranteed,
    view,
)

# CPUs 0-3, 4-7, 8-11 and 12-15 in NUMA nodes #0 to #3, two in each socket
NODES = view("2s2n4c")


def cpus(text: str) -> Hint:
    return Hint("device", cpus=CpuSet.parse(text))


def node(*ids: int) -> Hint:
    return Hint("device", nodes=NodeSet.of(*ids))


def package(*ids: int) -> Hint:
    return Hint("device", packages=frozenset(ids))


@pytest.mark.parametrize(
    ("given", "hints", "expected"),
    [
        pytest.param(
            NODES,
            [node(2)],
            ["NUMA node #2: hints", "socket #1: hints", "root: hints"],
            id="to the node of a device, and then to what is around it",
        ),
        pytest.param(
            NODES,
            [node(2), node(3)],
            ["socket #1: hints", "root: hints", "NUMA node #2: id"],
            id="two devices of a socket meet in the socket",
        ),
        pytest.param(
            NODES,
            [node(0), node(3)],
            ["root: hints", "NUMA node #0: id", "NUMA node #3: hints"],
            id="devices of two sockets meet in the root, else one of them is near",
        ),
        pytest.param(
            NODES,
            [cpus("4-5,8")],
            ["root: hints", "NUMA node #1: depth", "socket #0: hints"],
            id="as many of the CPUs as can be had, then the deepest",
        ),
        pytest.param(
            NODES,
            [Hint("device", CpuSet.of(4), NodeSet.of(3), frozenset({1}))],
            ["NUMA node #1: depth", "socket #0: depth", "root: hints"],
            id="CPUs say more than nodes",
        ),
        pytest.param(
            NODES,
            [Hint("device", nodes=NodeSet.of(1), packages=frozenset({1}))],
            ["NUMA node #1: hints", "socket #0: hints", "root: hints"],
            id="nodes say more than packages",
        ),
        pytest.param(
            NODES,
            [package(1)],
            ["socket #1: hints", "root: hints", "NUMA node #2: id"],
            id="to the package of a device, and not to a part of it",
        ),
        pytest.param(
            NODES,
            [package(7)],
            ["NUMA node #0: id", "NUMA node #1: id", "NUMA node #2: id"],
            id="a place that is not there decides nothing",
        ),
        pytest.param(
            view("2s2d2n2c"),
            [node(5)],
            ["NUMA node #5: hints", "die #1/0: depth", "socket #1: hints"],
            id="a die is as good as its socket, and deeper",
        ),
        pytest.param(
            view("2s2d2n2c"),
            [package(1)],
            ["socket #1: hints", "root: hints", "die #1/0: id"],
            id="a die is half of a package",
        ),
        pytest.param(
            view("1s2n4c l3=2"),
            [node(1)],
            ["NUMA node #1: hints", "NUMA node #1/L3 cache #2: id"],
            id="a node is better than one of its caches",
        ),
        pytest.param(
            view("2s2n2c cxl=1x4Gi"),
            [node(4)],
            ["NUMA node #0: hints", "socket #0: hints", "root: hints"],
            id="memory without CPUs is near the CPUs it is attached to",
        ),
    ],
)
def test_hints(given: NodeView, hints: list[Hint], expected: list[str]) -> None:
    spec = guaranteed(1000, hints=tuple(hints))

    found = list(candidates(asked(spec, given), given))

    reported = [f"{one.pool.name}: {one.decided}" for one in found]
    assert reported[: len(expected)] == expected


STRICT = Preferences(strict_hints=True)


@pytest.mark.parametrize(
    ("given", "milli", "hints", "expected"),
    [
        pytest.param(
            NODES,
            4000,
            [node(2)],
            ["NUMA node #2", "socket #1", "root"],
            id="larger pools have the CPUs, too",
        ),
        pytest.param(
            NODES,
            3000,
            [node(2), cpus("9-12")],
            ["socket #1", "root", "NUMA node #2"],
            id="CPUs must be near to every device",
        ),
        pytest.param(
            NODES,
            4000,
            [node(2), cpus("9-12")],
            [],
            id="too few are near to every device",
        ),
        pytest.param(
            NODES, 1000, [node(0), node(3)], [], id="none is near to every device"
        ),
        pytest.param(
            NODES,
            1500,
            [node(2)],
            ["NUMA node #2"],
            id="what is shared besides must be near, too",
        ),
        pytest.param(
            view("2s2n2c cxl=1x4Gi"),
            2000,
            [node(4)],
            ["NUMA node #0", "socket #0", "root", "NUMA node #1"],
            id="memory without CPUs leaves the choice of CPUs alone",
        ),
        pytest.param(
            view("2s2n2c isolated=3"),
            1000,
            [cpus("3")],
            ["NUMA node #1", "socket #0", "root"],
            id="an isolated CPU near the device will do",
        ),
        pytest.param(
            view("2s2n2c isolated=3"),
            1000,
            [cpus("2")],
            ["NUMA node #1", "socket #0", "root"],
            id="another one will do where isolated ones are far",
        ),
        pytest.param(
            view("2s2n2c isolated=3", [Tenant("NUMA node #1", cpus="2")]),
            1000,
            [cpus("2")],
            [],
            id="isolated ones that are far will not do",
        ),
    ],
)
def test_strict_hints(
    given: NodeView, milli: int, hints: list[Hint], expected: list[str]
) -> None:
    spec = guaranteed(milli, hints=tuple(hints), preferences=STRICT)

    found = candidates(asked(spec, given), given)

    assert [one.pool.name for one in found][:4] == expected


def test_containers_that_share_only_get_pools_that_are_all_inside() -> None:
    spec = burstable(100, 200, hints=(cpus("8-15"),), preferences=STRICT)

    found = candidates(asked(spec, NODES), NODES)

    assert [one.pool.name for one in found] == [
        "socket #1",
        "NUMA node #2",
        "NUMA node #3",
    ]
