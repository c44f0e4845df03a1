"""Devices of the kubelet as hints: by real sockets, known early and late."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from nri_proto import NriLevel
from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.app.plugin.late_hints import follow_hints
from nri_resmgr.kubelet.pod_resources import PodName
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.rules import Rule
from nri_resmgr.testing.kubelet.pod_resources import GET, FakeClaim, FakeDevice
from nri_resmgr.topology.hints import Hint, complete_hints
from nri_resmgr.values import NodeSet
from tests.app.kubelet_node import document, running_daemon, running_node
from tests.app.node import SAFE, UNSAFE
from tests.waiting import until

TEXT = document("TopologyAwarePolicy", "{}")

#  node 0: CPUs 0-3     node 1: CPUs 4-7
GPU_1 = FakeDevice("example.com/gpu", ("0000:3b:00.0",), (1,))
GPU_0 = FakeDevice("example.com/gpu", ("0000:1a:00.0",), (0,))
NAMES = ("off", "on", "off-again")
GPU_TYPE = (
    "{reservedResources: {cpu: 'cpuset:0'}, balloonTypes: [{name: gpu, "
    "namespaces: [default], preferNewBalloons: true, "
    "preferCloseToDevices: ['podresourceapi:example.com/gpu']}]}"
)


async def test_devices_that_are_known_in_time_decide_on_the_place(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        await node.run("near", 2, devices=(GPU_1,))
        await node.run("far", 2)
        await node.run("here", 1, devices=(GPU_0,))

        assert [node.cpus(one) for one in ("near", "here")] == ["4-5", "3"]


@pytest.mark.parametrize("level", [SAFE, UNSAFE], ids=str)
async def test_a_running_container_follows_devices_that_are_known_later(
    level: NriLevel, tmp_path: Path
) -> None:
    async with running_node(tmp_path, level=level) as node:
        node.kubelet.hangs = True
        await node.run("late", 2, devices=(GPU_0,), knows=False)
        before = node.cpus("late")
        node.kubelet.hangs = False
        node.server.drop_connections()

        await until(lambda: node.answer("late") is not None)
        wanted = node.plugin.wanted("late")
        assert before == "4-5"
        assert wanted is not None
        assert str(wanted.cpus) == "1-2"
        # Where the runtime cannot be called, the next reply has it.
        if level == UNSAFE:
            await node.run("other", 1)
            await node.stop("other")
        await until(lambda: node.cpus("late") == "1-2")


async def test_a_place_that_is_near_already_is_kept(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        node.kubelet.hangs = True
        await node.run("late", 2, devices=(GPU_1,), knows=False)
        node.kubelet.hangs = False
        node.server.drop_connections()

        await until(lambda: node.answer("late") is not None)
        entry = node.plugin.state.ledger.entries["late"]
        assert [one.provider for one in entry.spec.hints] == [
            "podresapi:example.com/gpu:0000:3b:00.0"
        ]
        assert node.cpus("late") == "4-5"


async def test_a_full_node_is_no_reason_to_move(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.run("taken", 4, devices=(GPU_1,))
        node.kubelet.hangs = True
        await node.run("late", 2, devices=(GPU_1,), knows=False)
        node.kubelet.hangs = False
        node.server.drop_connections()

        await until(lambda: node.answer("late") is not None)
        assert (node.cpus("taken"), node.cpus("late")) == ("4-7", "1-2")


async def test_balloons_follow_resources_by_name(tmp_path: Path) -> None:
    async with running_node(tmp_path, kind="BalloonsPolicy", spec=GPU_TYPE) as node:
        await node.run("near", 2, devices=(GPU_1,))
        node.kubelet.hangs = True
        await node.run("late", 1, devices=(GPU_0,), knows=False)
        before = node.cpus("late")
        node.kubelet.hangs = False
        node.server.drop_connections()

        await until(lambda: node.answer("late") is not None)
        assert (node.cpus("near"), before) == ("4-5", "6")
        await until(lambda: node.cpus("late") == "1")


async def test_a_container_is_spread_over_its_devices_if_requested(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, machine="2s1n4c1t") as node:
        await node.run(
            "both",
            2,
            devices=(GPU_0, GPU_1),
            annotations={"pick-resources-by-hints.resource-policy.nri.io": "true"},
        )

        assert node.cpus("both") == "1,4"


async def test_an_annotation_turns_hints_of_pod_resources_off(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        off = {"topologyhints.resource-policy.nri.io": "mounts,devices"}
        await node.run("off", 2, devices=(GPU_0,), annotations=off)
        node.kubelet.hangs = True
        await node.run("late", 1, devices=(GPU_0,), annotations=off, knows=False)
        node.kubelet.hangs = False
        node.server.drop_connections()

        await until(lambda: node.answer("late") is not None)
        assert node.cpus("off") == "4-5"
        assert node.plugin.state.ledger.entries["late"].spec.hints == ()


@pytest.mark.parametrize(
    ("kind", "spec"), [("TopologyAwarePolicy", "{}"), ("BalloonsPolicy", GPU_TYPE)]
)
async def test_a_document_turns_devices_off_and_on(
    kind: str, spec: str, tmp_path: Path
) -> None:
    off = f"{{agent: {{podResourceAPI: false}}, {spec[1:]}"
    async with running_node(tmp_path, kind=kind, spec=off) as node:
        await node.run("off", 1, devices=(GPU_1,), knows=False)
        reconfigure(node.plugin, parse_config(document(kind, spec)))
        await node.run("on", 1, devices=(GPU_1,))
        reconfigure(node.plugin, parse_config(document(kind, off)))
        await node.run("off-again", 1, devices=(GPU_1,), knows=False)

        asked = {name: node.answer(name) is not None for name in NAMES}
        hints = {
            name: bool(node.plugin.state.ledger.entries[name].spec.hints)
            for name in NAMES
        }
    assert asked == hints == {"off": False, "on": True, "off-again": False}


async def test_claims_are_asked_about_where_devices_are_not(tmp_path: Path) -> None:
    off = "{agent: {podResourceAPI: false}}"
    async with running_node(tmp_path, spec=off) as node:
        await node.run(
            "claimed",
            2,
            devices=(GPU_1,),
            claims=(FakeClaim("c-1"),),
            env=("DRA_CPUSET_c-1=1-3",),
            knows=False,
        )
        await until(lambda: str(node.plugin.claims.taken) == "1-3")
        asked = node.server.calls[GET]

    assert asked == 1


async def test_a_kubelet_that_never_answers_changes_nothing(tmp_path: Path) -> None:
    async with running_node(tmp_path, patience=0.05) as node:
        node.kubelet.hangs = True
        await node.run("late", 2, devices=(GPU_1,), knows=False)
        await node.stop("late")

        assert node.plugin.state.ledger.entries == {}
        assert node.answer("late") is None


@pytest.mark.parametrize(("sources", "cpus"), [("all", "1-2"), ("none", "4-5")])
async def test_a_restarted_daemon_finds_devices_that_were_not_known(
    sources: str, cpus: str, tmp_path: Path
) -> None:
    asked = {"topologyhints.resource-policy.nri.io": sources}
    async with running_node(tmp_path) as node:
        node.kubelet.hangs = True
        await node.run("late", 2, devices=(GPU_0,), knows=False, annotations=asked)
        before, state = node.cpus("late"), node.plugin.state
        node.kubelet.hangs = False

        async with running_daemon(
            tmp_path, node.runtime, "1s2n4c1t", TEXT, state=state
        ) as (plugin, book):
            name = PodName("default", "late")
            await until(lambda: book.of(name, "uid-late") is not None)
            wanted = plugin.wanted("late")
            assert before == "4-5"
            assert wanted is not None
            assert str(wanted.cpus) == cpus


async def test_explain_has_the_reason_of_a_move(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.run("late", 2, devices=(GPU_1,))
        spec = node.plugin.state.ledger.spec_of("late")
        state, policy = node.plugin.state, node.plugin.policy
        near = complete_hints(
            (Hint("podresapi:example.com/gpu:x", nodes=NodeSet.of(0)),),
            node.plugin.machine,
        )

        moved = follow_hints(policy, state, replace(spec, hints=near))
        again = follow_hints(policy, moved.state, replace(spec, hints=near))
        await node.run("big", 3, devices=(GPU_0,))
        full = follow_hints(policy, node.plugin.state, replace(spec, hints=near))

    reason = moved.reasons[0]
    assert (reason.rule, str(reason.cpus)) == (Rule.HINTED, "1-2")
    assert reason.detail == "it is near example.com/gpu:x (node 0)"
    assert again.reasons[0].rule is Rule.UNCHANGED
    assert again.reasons[0].detail == "it is near example.com/gpu:x (node 0) already"
    assert again.updates == ()
    assert full.reasons[0].rule is Rule.UNCHANGED
    assert full.reasons[0].detail == "no place is nearer to example.com/gpu:x (node 0)"
