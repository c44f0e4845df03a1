"""One policy gives way to another while containers run, come and go."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any, Final

import pytest

from nri_proto import NriLevel
from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.config import BadSetting, PolicyConfig
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.balloons.policy import BalloonsPolicy
from nri_resmgr.policy.events import Pin
from nri_resmgr.testing import RuntimeRefusal
from nri_resmgr.values import CpuSet
from tests.app.node import SAFE, UNSAFE, Node, config, running_node
from tests.waiting import until

pytestmark = pytest.mark.slow  # plays many containers over a socket

_BALLOONS: Final = """{
  reservedResources: {cpu: '1'},
  allowLoss: true,
  balloonTypes: [
    {name: fast, matchExpressions: [{key: name, operator: Matches, values: ['web*']}],
     maxCPUs: 4, preferNewBalloons: true},
    {name: idle, matchExpressions: [{key: name, operator: Matches, values: ['log*']}],
     maxBalloons: 1, shareIdleCPUsInSame: system}]}"""
_TREE: Final = "{reservedResources: {cpu: '1'}, allowLoss: true}"
_MACHINE: Final = "2s2n4c2t memory=8Gi"
_SIZES: Final = (0.25, 1, 1.5, 2, 3)


def balloons(spec: str = _BALLOONS) -> PolicyConfig:
    text = config(spec).replace("TopologyAwarePolicy", "BalloonsPolicy")
    return parse_config(text)


def tree(spec: str = _TREE) -> PolicyConfig:
    return parse_config(config(spec))


def wanted(node: Node) -> dict[str, Pin]:
    return dict(node.plugin.policy.pins(node.plugin.state))


def in_force(node: Node) -> dict[str, tuple[str, str]]:
    return {name: node.pinned(name) for name in node.runtime.world.containers}


def is_settled(node: Node) -> bool:
    """Return whether the runtime has each container where the policy wants it."""
    pins = {key: (str(pin.cpus), str(pin.mems)) for key, pin in wanted(node).items()}
    return in_force(node) == pins


def check_all_placed(node: Node) -> None:
    """All containers are pinned, and each is in one place of the policy."""
    state: Any = node.plugin.state
    names = node.runtime.world.containers.keys()
    assert state.ledger.entries.keys() == names
    for name in names:
        cpus, mems = node.pinned(name)
        assert cpus
        assert mems
    if isinstance(node.plugin.policy, BalloonsPolicy):
        seated = [one for balloon in state.balloons.values() for one in balloon.members]
        assert sorted(seated) == sorted(names)
    else:
        assert state.grants.keys() == names


def check_apart(node: Node) -> None:
    """No container gets CPUs of another balloon."""
    if isinstance(node.plugin.policy, BalloonsPolicy):
        state: Any = node.plugin.state
        for name in node.runtime.world.containers:
            mine = state.memberships[name].balloon
            others = [one.cpus for key, one in state.balloons.items() if key != mine]
            cpus = CpuSet.parse(node.pinned(name)[0])
            assert cpus.isdisjoint(CpuSet.union(others)), name


async def live(node: Node, rounds: int) -> None:
    """Let containers come, change and go; the node may refuse them."""
    dice = random.Random(5)  # noqa: S311 - nothing is hidden
    names: list[str] = []
    for number in range(rounds):
        name = f"{dice.choice(['web', 'log', 'job'])}{number}"
        try:
            await node.run(name, dice.choice(_SIZES))
            names.append(name)
        except RuntimeRefusal:
            await node.runtime.remove_pod(f"pod-{name}")
        if names and dice.random() < 0.3:
            await resize(node, dice.choice(names), dice.choice(_SIZES))
        if len(names) > 8:
            gone = names.pop(dice.randrange(len(names)))
            await node.runtime.stop_container(gone)
            await node.runtime.remove_container(gone)
            await node.runtime.stop_pod(f"pod-{gone}")
        check_all_placed(node)


async def resize(node: Node, name: str, cpus: float) -> None:
    try:
        await node.resize(name, cpus)
    except RuntimeRefusal:
        return


@pytest.mark.parametrize("level", [SAFE, UNSAFE])
async def test_containers_come_and_go_while_the_policy_changes(
    tmp_path: Path, level: NriLevel
) -> None:
    async with running_node(tmp_path, _MACHINE, _TREE, level=level) as node:
        living = asyncio.create_task(live(node, 20))
        changes = 0
        while not living.done():
            reconfigure(node.plugin, tree() if changes % 2 else balloons())
            changes += 1
            await asyncio.sleep(0.02)
        await living
        reconfigure(node.plugin, balloons())
        if level is UNSAFE:
            await node.run("last", 0.25)  # the answer carries what was due
        await until(lambda: is_settled(node))

        check_all_placed(node)
        check_apart(node)
        assert changes > 3


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(tree(), balloons(), id="from pools to balloons and back"),
        pytest.param(balloons(), tree(), id="from balloons to pools and back"),
    ],
)
async def test_a_switch_moves_all_containers_and_so_does_the_switch_back(
    tmp_path: Path, first: PolicyConfig, second: PolicyConfig
) -> None:
    async with running_node(tmp_path, _MACHINE) as node:
        reconfigure(node.plugin, first)
        for name, cpus in {"web": 2.0, "log": 0.25, "job": 1.5}.items():
            await node.run(name, cpus)
        kinds = []
        for chosen in (second, first, second):
            reconfigure(node.plugin, chosen)
            await until(lambda: is_settled(node))
            check_all_placed(node)
            check_apart(node)
            kinds.append(node.plugin.policy.kind)
        await node.runtime.remove_container("web")
        await node.run("late", 2)
        is_right = is_settled(node)

    assert is_right
    assert kinds[0] == kinds[2] != kinds[1]


@pytest.mark.parametrize(
    ("first", "refused"),
    [
        pytest.param(
            tree(),
            balloons(
                "{reservedResources: {cpu: '1'}, balloonTypes: [{name: a, "
                "minCPUs: 40, minBalloons: 1}]}"
            ),
            id="balloons that are larger than the machine",
        ),
        pytest.param(
            tree(),
            balloons("{reservedResources: {cpu: 99}}"),
            id="balloons with more CPUs than there are",
        ),
        pytest.param(
            balloons(),
            tree("{reservedResources: {cpu: 99}}"),
            id="pools with more CPUs than there are",
        ),
        pytest.param(
            balloons(),
            balloons(
                "{reservedResources: {cpu: '1'}, balloonTypes: [{name: a, "
                "cpus: '3'}, {name: b, cpus: '2-3'}]}"
            ),
            id="balloons on the same CPUs",
        ),
    ],
)
async def test_a_switch_that_does_not_fit_changes_nothing(
    tmp_path: Path, first: PolicyConfig, refused: PolicyConfig
) -> None:
    async with running_node(tmp_path, _MACHINE) as node:
        reconfigure(node.plugin, first)
        for name, cpus in {"web": 2.0, "log": 0.25, "job": 1.5}.items():
            await node.run(name, cpus)
        plugin, records = node.plugin, len(node.runtime.records)
        before = (plugin.config, plugin.policy, plugin.state, in_force(node))
        with pytest.raises(BadSetting):
            reconfigure(plugin, refused)
        after = (plugin.config, plugin.policy, plugin.state, in_force(node))
        sent = len(node.runtime.records) - records
        await node.run("late", 1)

        assert all(now is then for now, then in zip(after[:3], before[:3], strict=True))
        assert (after[3], sent) == (before[3], 0)
        check_all_placed(node)
        assert is_settled(node)


def nothing() -> PolicyConfig:
    kind = "apiVersion: config.nri/v1alpha1\nkind: NonePolicy\n"
    return parse_config(f"{kind}spec: {{allowLoss: true}}\n")


def static(kind: str = "StaticPolicy") -> PolicyConfig:
    text = config("{reservedResources: {cpu: 'cpuset:0'}}")
    return parse_config(text.replace("TopologyAwarePolicy", kind))


@pytest.mark.parametrize(
    "placing",
    [
        tree(),
        balloons(),
        static(),
        static("StaticPlusPolicy"),
        static("PodpoolsPolicy"),
        static("DynamicPoolsPolicy"),
        parse_config(config("{}").replace("TopologyAware", "StaticPools")),
    ],
)
async def test_the_none_policy_moves_no_container_and_refuses_none(
    tmp_path: Path, placing: PolicyConfig
) -> None:
    async with running_node(tmp_path, _MACHINE) as node:
        reconfigure(node.plugin, placing)
        for name, cpus in {"web": 2.0, "log": 0.25}.items():
            await node.run(name, cpus)
        await until(lambda: is_settled(node))
        before = in_force(node)
        reconfigure(node.plugin, nothing())
        await node.run("huge", 64)  # of a node with 16 CPUs
        await node.resize("log", 32)
        while_nothing = in_force(node)
        await node.runtime.remove_container("huge")
        await node.resize("log", 0.25)
        reconfigure(node.plugin, placing)
        await until(lambda: is_settled(node))
        after = in_force(node)

    assert while_nothing == {**before, "huge": ("", "")}
    assert after == before
