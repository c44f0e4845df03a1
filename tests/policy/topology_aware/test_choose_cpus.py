"""Which pool is chosen for its CPUs, and what decided against the next best."""

from __future__ import annotations

import attrs
import msgspec
import pytest

from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.preferences import Preferences, TreeLevel
from nri_resmgr.policy.topology_aware.choose import candidates
from nri_resmgr.policy.topology_aware.state import NodeView
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, KiloHertz
from tests.policy.topology_aware.choosing import (
    Tenant,
    asked,
    best_effort,
    burstable,
    guaranteed,
    view,
)

SOCKETS = "2s2c"
# CPUs 0-3, 4-7, 8-11 and 12-15 in NUMA nodes #0 to #3, two in each socket
NODES = "2s2n4c"

ISOLATED_MUST = Preferences(require_isolated=True)
ANYWHERE = Preferences(unlimited_burstable=TreeLevel.SYSTEM)
NEAR_ITS_POD = Tenant("NUMA node #2", 100, pod="new-pod")


def order(spec: ContainerSpec, node: NodeView) -> list[str]:
    """Write the candidates as ``pool: what decided against the next``."""
    found = candidates(asked(spec, node), node)
    return [f"{one.pool.name}: {one.decided}" for one in found]


def share(pool: str, *millis: int) -> list[Tenant]:
    return [Tenant(pool, one) for one in millis]


@pytest.mark.parametrize(
    ("node", "spec", "expected"),
    [
        pytest.param(
            view(SOCKETS, [Tenant("socket #0", cpus="0-1")]),
            guaranteed(2000),
            ["socket #1: fewer-nodes", "root: capacity"],
            id="pools whose CPUs are taken are no candidates",
        ),
        pytest.param(
            view(SOCKETS, reserved="0"),
            guaranteed(2000),
            ["socket #1: fewer-nodes", "root: capacity"],
            id="reserved CPUs cannot be taken",
        ),
        pytest.param(
            view(SOCKETS),
            guaranteed(2000),
            ["socket #0: id", "socket #1: fewer-nodes", "root: only-one"],
            id="an idle pool can be taken as a whole",
        ),
        pytest.param(
            view(SOCKETS, share("socket #0", 0)),
            guaranteed(2000),
            ["socket #1: fewer-nodes", "root: capacity"],
            id="a pool with a container that asks for nothing keeps its last CPU",
        ),
        pytest.param(
            view(SOCKETS, share("root", 0)),
            guaranteed(4000),
            [],
            id="what runs on all CPUs needs one of them",
        ),
        pytest.param(
            view(SOCKETS, share("socket #0", 1500)),
            burstable(501, 501),
            ["socket #1: fewer-nodes", "root: capacity"],
            id="shares are granted up to the last thousandth",
        ),
        pytest.param(
            view(SOCKETS, share("root", 3400)),
            burstable(600, 600),
            ["socket #0: id", "socket #1: fewer-nodes", "root: only-one"],
            id="what is granted above counts below",
        ),
        pytest.param(
            view("1c", share("socket #0", 1000)),
            best_effort(),
            [],
            id="a container without a request counts for a thousandth",
        ),
        pytest.param(
            view(NODES, reserved="0"),
            burstable(100, namespace="kube-system"),
            ["root: only-one"],
            id="reserved containers have but one place",
        ),
        pytest.param(
            view(NODES),
            burstable(100, preferences=Preferences(preserve_cpus=True)),
            ["root: only-one"],
            id="containers that are left alone have but one place",
        ),
    ],
)
def test_capacity(node: NodeView, spec: ContainerSpec, expected: list[str]) -> None:
    assert order(spec, node) == expected


@pytest.mark.parametrize(
    ("node", "spec", "expected"),
    [
        pytest.param(
            view("2s2c isolated=3"),
            guaranteed(1000),
            ["socket #1: fewer-nodes", "root: isolated-cpus", "socket #0: only-one"],
            id="pools with an isolated CPU go before all others",
        ),
        pytest.param(
            view("2s2c isolated=3"),
            guaranteed(1000, preferences=ISOLATED_MUST),
            ["socket #1: fewer-nodes", "root: capacity"],
            id="where they are required pools without them are left out",
        ),
        pytest.param(
            view("2s2c isolated=3", [Tenant("socket #1", cpus="3")]),
            guaranteed(1000),
            ["socket #0: spread", "socket #1: fewer-nodes", "root: only-one"],
            id="isolated CPUs that are taken attract no container",
        ),
        pytest.param(
            view("2s2c isolated=3", share("socket #1", 900)),
            guaranteed(1500),
            ["root: isolated-cpus", "socket #0: capacity"],
            id="a pool with the isolated CPU but not the fraction is left out",
        ),
        pytest.param(
            view("2s4c isolated=2-3,5-7"),
            guaranteed(1000),
            ["socket #1: spread", "socket #0: fewer-nodes", "root: only-one"],
            id="the pool with more isolated CPUs is better",
        ),
        pytest.param(
            view("2s2c isolated=1,3", share("socket #0", 500)),
            guaranteed(1000),
            ["socket #0: id", "socket #1: fewer-nodes", "root: only-one"],
            id="what is shared besides isolated CPUs does not matter",
        ),
    ],
)
def test_isolated_cpus(
    node: NodeView, spec: ContainerSpec, expected: list[str]
) -> None:
    assert order(spec, node) == expected


@pytest.mark.parametrize(
    ("tenants", "expected"),
    [
        pytest.param(
            [NEAR_ITS_POD],
            ["NUMA node #2: affinity", "socket #1: affinity", "root: affinity"],
            id="to the pool of a friend",
        ),
        pytest.param(
            [NEAR_ITS_POD, attrs.evolve(NEAR_ITS_POD, pool="NUMA node #3")],
            ["socket #1: affinity", "root: affinity", "NUMA node #2: id"],
            id="between two friends",
        ),
    ],
)
def test_affinity(tenants: list[Tenant], expected: list[str]) -> None:
    node = view(NODES, tenants, colocate_pods=True)

    assert order(guaranteed(2000), node)[:3] == expected


@pytest.mark.parametrize(
    ("node", "spec", "expected"),
    [
        pytest.param(
            view(NODES, share("NUMA node #0", 501)),
            burstable(500, 3500),
            ["NUMA node #1: id", "NUMA node #2: id", "NUMA node #3: fewer-nodes"],
            id="with a limit to a pool that can grant as much as the limit",
        ),
        pytest.param(
            view(NODES, share("NUMA node #0", 500)),
            burstable(500, 3500),
            ["NUMA node #1: id", "NUMA node #2: id", "NUMA node #3: colocation"],
            id="just as much will do",
        ),
        pytest.param(
            view(NODES),
            burstable(500, 4500),
            ["socket #0: id", "socket #1: fewer-nodes", "root: burstable-limit"],
            id="a limit above a node's CPUs asks for a socket",
        ),
        pytest.param(
            view(NODES),
            burstable(500),
            ["socket #0: id", "socket #1: burstable-level", "NUMA node #0: id"],
            id="without a limit to a socket, and finer before coarser",
        ),
        pytest.param(
            view(NODES, share("NUMA node #1", 300)),
            burstable(500),
            ["socket #1: spread", "socket #0: burstable-level", "NUMA node #0: id"],
            id="at the level to where more is left",
        ),
        pytest.param(
            view(NODES, unlimited_burstable=TreeLevel.NUMA),
            burstable(500),
            ["NUMA node #0: id", "NUMA node #1: id", "NUMA node #2: id"],
            id="the level is a setting",
        ),
        pytest.param(
            view(NODES, unlimited_burstable=TreeLevel.DIE),
            burstable(500),
            ["socket #0: id", "socket #1: burstable-level", "NUMA node #0: id"],
            id="a level that the tree has not stands for the next coarser one",
        ),
        pytest.param(
            view(NODES, unlimited_burstable=TreeLevel.NUMA),
            burstable(500, preferences=ANYWHERE),
            ["root: burstable-level", "NUMA node #0: id", "NUMA node #1: id"],
            id="an annotation wins over the setting",
        ),
        pytest.param(
            view(
                NODES,
                [attrs.evolve(NEAR_ITS_POD, pool="socket #0", shared=7000)],
                unlimited_burstable=TreeLevel.L3,
                colocate_pods=True,
            ),
            burstable(1001),
            ["root: affinity", "NUMA node #2: id", "NUMA node #3: burstable-level"],
            id="affinity is looked at before the level",
        ),
    ],
)
def test_burstable(node: NodeView, spec: ContainerSpec, expected: list[str]) -> None:
    assert order(spec, node)[:3] == expected


def with_fast_cpus() -> Machine:
    """Make node #0 slow and #1 fast; among the CPUs of socket #1 none is better."""
    machine, fast = parse_spec(NODES), CpuSet.parse("4-7")
    cpus = (
        msgspec.structs.replace(
            cpu, base=KiloHertz(3_000_000 if cpu.id in fast else 2_000_000)
        )
        for cpu in machine.cpus
    )
    return msgspec.structs.replace(machine, cpus=tuple(cpus))


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        pytest.param(
            CpuPriority.HIGH,
            ["NUMA node #1: cpu-priority", "NUMA node #0: id"],
            id="high: to the fast CPUs",
        ),
        pytest.param(
            CpuPriority.LOW,
            ["NUMA node #0: cpu-priority", "NUMA node #1: id"],
            id="low: to the slow ones",
        ),
        pytest.param(
            CpuPriority.NORMAL,
            ["NUMA node #2: id", "NUMA node #3: cpu-priority"],
            id="normal: to those that are neither",
        ),
        pytest.param(
            CpuPriority.ANY,
            ["NUMA node #0: id", "NUMA node #1: id"],
            id="none: to any",
        ),
    ],
)
def test_priority(priority: CpuPriority, expected: list[str]) -> None:
    node = view(with_fast_cpus(), cpu_priority=priority)

    assert order(guaranteed(2000), node)[:2] == expected


def test_levels_finer_than_the_wanted_one_go_before_coarser_ones() -> None:
    node = view("2s2d2n2c", unlimited_burstable=TreeLevel.DIE)

    levels = [one.pool.level for one in candidates(asked(burstable(500), node), node)]

    finer, coarser = [TreeLevel.NUMA] * 8, [TreeLevel.PACKAGE] * 2
    assert levels == [*[TreeLevel.DIE] * 4, *finer, *coarser, TreeLevel.SYSTEM]
