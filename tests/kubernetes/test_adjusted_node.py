"""Adjustments of running containers, by `kubectl` as users of CRI Resource Manager.

Rows S16 to S22 of its set-up: the whole of a real cluster, a real daemon and its agent.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs
import pytest
import yaml

from nri_resmgr.cli.workload import Workload
from nri_resmgr.host.cgroups.top_tier import TOP_TIER_FILE
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, QosClass
from tests.daemon.adjustable import GOLD, ROOT, add_kernel, cgroup_value, create, limits
from tests.daemon.daemon_process import RunningDaemon, daemon
from tests.daemon.test_insight import ENDPOINT, metrics
from tests.kubernetes.nodes import Node, policy, until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600, func_only=True)]

KIND: Final = "TopologyAwarePolicy"
DOCUMENT: Final = policy(
    "default",
    "cpuset:0",
    KIND,
    control={
        "rdt": {"enable": True},
        "blockio": {"enable": True, "classes": {"slow": [{"Weight": 50}]}},
    },
)
# Counters of containers with other requests, of rebalances, and of moves in these.
COUNTERS: Final = (
    'nri_resmgr_decisions_total{event="updated"}',
    'nri_resmgr_decisions_total{event="rebalance"}',
    'nri_resmgr_rules_total{rule="rebalanced"}',
)
# In the cgroup before and after an adjustment; this runtime writes none.
UNTOUCHED: Final = ("max 100000", "max")
OWN: Final = ("200000 100000", str(1 << 30))
ADJUSTED: Final = ("300000 100000", str(64 << 20))
MORE: Final = {
    "resources": {"limits": {"cpu": "3", "memory": "64Mi"}},
    "classes": {"rdt": "gold", "blockio": "slow"},
    "toptierLimit": "32Mi",
}


def adjustment(
    name: str, *pods: str, nodes: tuple[str, ...] = (), **payload: Any
) -> Mapping[str, Any]:
    """Write one; without pods it is for all containers, without nodes for all nodes."""
    scope: dict[str, Any] = {"nodes": list(nodes)} if nodes else {}
    if pods:
        scope["containers"] = [
            {"key": ":,:pod/name,name", "operator": "Matches", "values": [f"{pod}:*"]}
            for pod in pods
        ]
    return {
        "apiVersion": "criresmgr.intel.com/v1alpha1",
        "kind": "Adjustment",
        "metadata": {"name": name},
        "spec": {"scope": [scope], **payload},
    }


@attrs.frozen(eq=False)
class Adjusted:
    """A node with two containers, whose host has what can be adjusted.

    `web` is Guaranteed, with two CPUs of its own, and `next` is Burstable.
    """

    node: Node
    running: RunningDaemon

    @property
    def limits(self) -> tuple[str, str]:
        """CPU and memory limit in the cgroup of `web`."""
        return limits(self.node.folder / "host")

    def value(self, name: str, container: str = "web") -> str:
        """What a file of a cgroup has."""
        return cgroup_value(self.node.folder / "host", name, container)

    def top_tier(self, container: str = "web") -> int:
        """The limit of a container's fast memory; below 0 for none."""
        text = self.value(TOP_TIER_FILE, container)
        return int(text) if text.isdigit() else -1

    def tasks(self, group: str = GOLD) -> str:
        """Threads that were written into an RDT group; no kernel moves them."""
        return (self.node.folder / "host" / group).read_text().strip()

    def cpus(self, container: str = "web") -> CpuSet:
        """CPUs of a container, as the runtime has them."""
        linux = self.running.runtime.world.containers[container].linux
        return CpuSet.parse(linux.resources.cpu.cpus)

    async def counted(self) -> list[float]:
        """The daemon's counters."""
        found = await metrics(self.running)
        return [found.get(name, 0) for name in COUNTERS]

    def status(self, name: str) -> Any:
        """The status of an adjustment, as `kubectl` shows it."""
        return self.node.kubectl.get("adjustment", name).get("status")

    def entry(self, errors: Mapping[str, str]) -> Any:
        """The whole status of an adjustment with errors of this node."""
        return {"nodes": {self.node.name: {"errors": dict(errors)}}}

    async def shows(self, name: str, errors: Mapping[str, str]) -> None:
        """Wait until the status of an adjustment is just that."""
        try:
            await until(lambda: self.status(name) == self.entry(errors))
        except TimeoutError:
            raise AssertionError(self.status(name)) from None


@asynccontextmanager
async def adjustable(node: Node) -> AsyncIterator[Adjusted]:
    """Run daemon and agent, with the document in force."""
    node.kubectl.apply(DOCUMENT)
    async with daemon(
        node.folder,
        parse_spec("1s2n4c1t"),
        *(*node.daemon_flags, *ENDPOINT),
        before=add_kernel,
    ) as running:
        await running.line("control.listening")
        async with node.agent("--kinds", KIND):
            await until(lambda: node.condition()[1] == "Accepted")
            await create(running.runtime, "web", QosClass.GUARANTEED, 2000)
            await create(running.runtime, "next")
            yield Adjusted(node, running)


async def test_running_containers_are_adjusted_at_once_and_restored(node: Node) -> None:
    async with adjustable(node) as adjusted:
        assert adjusted.limits == UNTOUCHED
        before = {name: adjusted.cpus(name) for name in ("web", "next")}
        assert await adjusted.counted() == [0, 0, 0]
        # By the beginning of the node's name, and by one of two expressions.
        more = adjustment("more", "none", "web", nodes=("other", "node-*"), **MORE)
        node.kubectl("create", "-f", "-", stdin=yaml.safe_dump(more))
        await until(lambda: adjusted.limits == ADJUSTED)
        await until(lambda: len(adjusted.cpus()) == 3)
        await until(lambda: adjusted.tasks() == "7")
        await until(lambda: adjusted.value("io.weight") == "405")
        await until(lambda: adjusted.top_tier() == 32 << 20)
        await adjusted.shows("more", {})
        # The others make room.
        await until(lambda: adjusted.cpus("next").isdisjoint(adjusted.cpus()))
        assert await adjusted.counted() == [1, 1, 0]
        # With a limit it need not spread any more: a rebalance follows, and moves it.
        less = adjustment("less", "next", resources={"limits": {"cpu": "1"}})
        node.kubectl.apply(less)
        moved = await adjusted.running.line("node.rebalanced")
        assert moved["title"] == "default/next/next"
        await until(lambda: len(adjusted.cpus("next")) <= 3)
        assert await adjusted.counted() == [2, 2, 1]
        # As users look at it.
        listed = node.kubectl("get", "adjustments")
        described = node.kubectl("describe", "adjustment", "more")
        names = [line.split()[0] for line in listed.splitlines()]
        assert names == ["NAME", "less", "more"]
        assert node.name in described
        node.kubectl("delete", "adjustment", "more", "less")
        await until(lambda: adjusted.limits == OWN)
        await until(lambda: len(adjusted.cpus()) == 2)
        await until(lambda: adjusted.tasks(ROOT) == "7")
        await until(lambda: adjusted.value("io.weight") == "100")
        await until(lambda: adjusted.top_tier() != 32 << 20)
        await until(lambda: len(adjusted.cpus("next")) == len(before["next"]))

    assert len(before["web"]) == 2
    # All that by the rights that are shipped.
    assert node.missing_rights() == []


def _merge(node: Node, name: str, patch: Mapping[str, Any]) -> None:
    text = json.dumps(patch)
    node.kubectl("patch", "adjustment", name, "--type=merge", "-p", text)


async def test_each_part_may_be_left_out_and_changed(node: Node) -> None:
    async with adjustable(node) as adjusted:
        node.kubectl.apply(adjustment("one", "web", classes={"rdt": "gold"}))
        await until(lambda: adjusted.tasks() == "7")
        await adjusted.shows("one", {})
        assert adjusted.limits == UNTOUCHED
        assert adjusted.value("io.weight") == "default 100"

        memory = {"requests": {"memory": "32Mi"}, "limits": {"memory": "64Mi"}}
        node.kubectl.apply(adjustment("one", "web", resources=memory))
        await until(lambda: adjusted.limits == (UNTOUCHED[0], ADJUSTED[1]))
        await until(lambda: adjusted.tasks(ROOT) == "7")
        assert len(adjusted.cpus()) == 2


async def test_only_the_nodes_of_a_scope_have_it_and_a_status(node: Node) -> None:
    async with adjustable(node) as adjusted:
        node.kubectl.apply(
            adjustment("there", nodes=("other", "x*"), **MORE),
            adjustment("here", "next", classes={"rdt": "gold"}),
        )
        await adjusted.shows("here", {})
        assert adjusted.limits == UNTOUCHED
        # Another node's entry is not ours to change.
        other: dict[str, Any] = {"other": {"errors": {}}}
        _merge(node, "there", {"status": {"nodes": other}})
        nodes = {"scope": [{"nodes": [node.name]}]}
        _merge(node, "there", {"spec": nodes})
        # Now there are two for the container.
        conflict = "cache: conflicting adjustments for next:next: here,there"
        await adjusted.shows("here", {"next": conflict})
        assert adjusted.limits == UNTOUCHED
        node.kubectl("delete", "adjustment", "here")
        await until(lambda: adjusted.limits == ADJUSTED)
        ours = adjusted.entry({})["nodes"]
        await until(lambda: adjusted.status("there") == {"nodes": other | ours})
        # Out of its scope again.
        _merge(node, "there", {"spec": {"scope": [{"nodes": ["other"]}]}})
        await until(lambda: adjusted.limits == OWN)
        await until(lambda: adjusted.status("there") == {"nodes": other})


async def test_each_scope_of_an_adjustment_counts(node: Node) -> None:
    here, next_to_it, there = (
        adjustment("", pod, nodes=(where,))["spec"]["scope"][0]
        for pod, where in (("web", node.name), ("next", "node-*"), ("next", "other"))
    )
    async with adjustable(node) as adjusted:
        both = adjustment("both", scope=[here, next_to_it], toptierLimit="32Mi")
        node.kubectl.apply(both)
        both_have = [32 << 20] * 2
        await until(
            lambda: [adjusted.top_tier(one) for one in ("web", "next")] == both_have
        )
        _merge(node, "both", {"spec": {"scope": [here, there]}})
        await until(lambda: adjusted.top_tier("next") != 32 << 20)

        assert adjusted.top_tier("web") == 32 << 20
        await adjusted.shows("both", {})


async def test_two_for_a_container_are_rejected_and_the_whole_update_ignored(
    node: Node,
) -> None:
    async with adjustable(node) as adjusted:
        node.kubectl.apply(adjustment("old", "web", resources=MORE["resources"]))
        await until(lambda: adjusted.limits == ADJUSTED)
        await adjusted.shows("old", {})
        node.kubectl.apply(
            adjustment("wide", "w*", resources={"limits": {"memory": "2Gi"}}),
            adjustment("new", "next", classes={"rdt": "gold"}),
        )
        conflict = {"web": "cache: conflicting adjustments for web:web: old,wide"}
        await adjusted.shows("old", conflict)
        await adjusted.shows("wide", conflict)
        why = (
            "the whole update is ignored because of old, wide; what was in force stays"
        )
        await adjusted.shows("new", {"request": why})
        assert adjusted.limits == ADJUSTED
        assert adjusted.tasks() == ""
        node.kubectl("delete", "adjustment", "wide")
        for name in ("old", "new"):
            await adjusted.shows(name, {})
        await until(lambda: adjusted.tasks() == "8")
        assert adjusted.limits == ADJUSTED


MISTAKES: Final = (
    (
        adjustment(
            "wrong",
            resources={"requests": {"cpu": "3"}, "limits": {"cpu": "2"}},
        ),
        "wrong",
        "$.spec.resources.requests.cpu: exceeds $.spec.resources.limits.cpu",
    ),
    (
        adjustment("wrong", "web", classes={"rdt": "fast"}),
        "web",
        "asks for RDT class 'fast' by adjustment wrong; known: system/default, gold;",
    ),
    (
        adjustment("wrong", "idle", resources={"limits": {"cpu": "1"}}),
        "ctr-idle",
        "cache: can't adjust resources of BestEffort container idle:idle: wrong",
    ),
    (
        adjustment("wrong", "web", resources={"limits": {"cpu": "64"}}),
        "web",
        "asks for 64 exclusive CPUs",
    ),
)


async def test_impossible_adjustments_are_errors_with_a_reason(node: Node) -> None:
    async with adjustable(node) as adjusted:
        await adjusted.running.place(Workload("idle", QosClass.BEST_EFFORT))
        node.kubectl.apply(adjustment("good", "next", classes={"rdt": "gold"}))
        await until(lambda: adjusted.tasks() == "8")
        for wrong, key, words in MISTAKES:
            node.kubectl.apply(wrong)
            await until(lambda: adjusted.status("wrong"))
            errors = adjusted.status("wrong")["nodes"][node.name]["errors"]
            assert list(errors) == [key]
            assert words in errors[key]
            # What was in force stays so, and its status says that.
            assert (adjusted.limits, adjusted.tasks()) == (UNTOUCHED, "8")
            assert adjusted.status("good") == adjusted.entry({})
            node.kubectl("delete", "adjustment", "wrong")
