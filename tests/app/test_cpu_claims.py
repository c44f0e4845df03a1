"""Claims of another CPU driver, which is a second plugin of the runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.app.plugin.changes.reconfiguration import (
    reconfigure,
    would_reconfigure,
)
from nri_resmgr.app.plugin.cpu_claims import ClaimTable, CpuClaim
from nri_resmgr.policies import parse_config
from nri_resmgr.stub import Container, ContainerAdjustment, CreateReply, Pod
from nri_resmgr.testing import running_plugin
from nri_resmgr.testing.kubelet.pod_resources import FakeClaim
from nri_resmgr.values import CpuSet
from tests.app.kubelet_node import (
    KubeletNode,
    document,
    running_daemon,
    running_node,
)
from tests.waiting import until

POLICIES = {
    "TopologyAwarePolicy": "{}",
    "BalloonsPolicy": "{reservedResources: {cpu: 'cpuset:0'}}",
    "StaticPolicy": "{reservedResources: {cpu: 'cpuset:0'}}",
    "NonePolicy": "{}",
}


USERS = frozenset({"uid-old"})


class Driver:
    """Pins containers as dra-driver-cpu does: to what their environment says."""

    def create_container(self, _: Pod, container: Container) -> CreateReply | None:
        sets = [
            CpuSet.parse(value)
            for name, value in container.environment.items()
            if name.startswith("DRA_CPUSET_")
        ]
        if not sets:
            return None
        cpus = str(CpuSet.union(sets))
        return CreateReply(ContainerAdjustment().set_cpus(cpus))


def claim(uid: str = "c-1", **fields: str) -> tuple[FakeClaim, ...]:
    return (FakeClaim(uid, **fields),)


def taken(node: KubeletNode) -> str:
    return str(node.plugin.claims.taken)


@pytest.mark.parametrize("kind", POLICIES)
async def test_cpus_of_a_claim_are_taken_and_its_container_is_left_alone(
    kind: str, tmp_path: Path
) -> None:
    async with (
        running_node(tmp_path, kind=kind, spec=POLICIES[kind]) as node,
        running_plugin(node.runtime, Driver(), "00-dra.cpu"),
    ):
        await node.run("before", 2)
        await node.run(
            "claimed", 2, claims=claim(), env=("A=1", "DRA_CPUSET_c-1=1-3,5")
        )
        await node.run("after", 1)

        assert node.cpus("claimed") == "1-3,5"
        assert taken(node) == "1-3,5"
        assert not node.granted() & CpuSet.parse("1-3,5")
        assert "claimed" not in node.plugin.state.ledger
        for name in ("before", "after"):
            assert not CpuSet.parse(node.cpus(name) or "0") & CpuSet.parse("1-3,5")

        # From prepare to unprepare, not to the container's stop.
        await node.stop("claimed", keeps_pod=True)
        assert taken(node) == "1-3,5"
        await node.end_pod("claimed")
        assert taken(node) == ""
        assert node.plugin.claims.table == ClaimTable()


async def test_a_restarted_container_of_the_claim_has_the_same_cpus(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        env = ("DRA_CPUSET_c-1=4-5",)
        await node.run("claimed", 2, claims=claim(), env=env)
        await node.stop("claimed", keeps_pod=True)
        await node.runtime.create_container(
            "pod-claimed", Container(id="again", name="claimed", env=env)
        )

        assert set(node.plugin.claims.table.containers) == {"again"}
        assert taken(node) == "4-5"


@pytest.mark.parametrize(
    ("claims", "env"),
    [
        pytest.param((), ("DRA_CPUSET_c-1=4-7",), id="no claim"),
        pytest.param(claim("c-2"), ("DRA_CPUSET_c-1=4-7",), id="another claim"),
        pytest.param(
            claim(driver="gpu.example.com"), ("DRA_CPUSET_c-1=4-7",), id="driver"
        ),
        pytest.param(claim(cdi="x/y=z"), ("DRA_CPUSET_c-1=4-7",), id="CDI device"),
        pytest.param(claim(), ("DRA_CPUSET_c-1=64",), id="no such CPU"),
        pytest.param(claim(), ("DRA_CPUSET_c-1=",), id="empty"),
        pytest.param(claim(), ("DRA_CPUSET_c-1=x",), id="no list"),
        pytest.param(claim(), ("DRA_CPUSET_=4",), id="no UID"),
        pytest.param(
            claim(), ("DRA_CPUSET_c-1=4", "DRA_CPUSET_c-2=5"), id="one too many"
        ),
        pytest.param(
            claim(), ("DRA_CPUSET_c-1=4", "DRA_CPUSET_c-1=5"), id="contradiction"
        ),
        pytest.param(claim(), ("DRA_CPUSET_c-1=" + "1," * 9999 + "1",), id="long"),
        pytest.param(
            claim(),
            tuple(f"DRA_CPUSET_{number}=4" for number in range(99)),
            id="many",
        ),
    ],
)
async def test_a_variable_that_the_kubelet_does_not_confirm_is_ignored(
    claims: tuple[FakeClaim, ...],
    env: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with running_node(tmp_path) as node:
        await node.run("liar", 2, claims=claims, env=env)

        assert taken(node) == ""
        assert node.cpus("liar") == "4-5"
        assert "liar" in node.plugin.state.ledger
    assert "claims.ignored" in capsys.readouterr().out


async def test_other_drivers_can_be_named(tmp_path: Path) -> None:
    async with running_node(tmp_path, drivers=("cpu.example.com",)) as node:
        other = claim(driver="cpu.example.com")
        await node.run("other", 2, claims=other, env=("DRA_CPUSET_c-1=4-5",))
        await node.run("usual", 2, claims=claim("c-2"), env=("DRA_CPUSET_c-2=6",))

        assert taken(node) == "4-5"


async def test_a_late_answer_decides_while_the_container_runs(tmp_path: Path) -> None:
    async with (
        running_node(tmp_path) as node,
        running_plugin(node.runtime, Driver(), "00-dra.cpu"),
    ):
        await node.run("other", 2)
        node.kubelet.hangs = True
        env = ("DRA_CPUSET_c-1=4-5",)
        await node.run("claimed", 2, claims=claim(), env=env, knows=False)
        await node.run("liar", 2, env=("DRA_CPUSET_c-9=1",), knows=False)
        waiting = node.plugin.claims.undecided
        node.kubelet.hangs = False
        node.server.drop_connections()

        await until(lambda: taken(node) == "4-5")
        await until(lambda: not node.plugin.claims.undecided)
        assert set(waiting) == {"claimed", "liar"}
        assert node.cpus("claimed") == "4-5"
        wanted = node.plugin.wanted("liar")
        assert wanted is not None
        await until(lambda: node.cpus("liar") == str(wanted.cpus))
        others = node.plugin.wanted("other")
        assert others is not None
        await until(lambda: node.cpus("other") == str(others.cpus))
        assert not node.granted() & CpuSet.parse("4-5")


async def test_without_an_answer_the_container_is_placed_after_a_while(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, patience=0.1) as node:
        node.kubelet.hangs = True
        env = ("DRA_CPUSET_c-1=4-5",)
        await node.run("claimed", 2, claims=claim(), env=env, knows=False)

        await until(lambda: "claimed" in node.plugin.state.ledger)
        await until(lambda: node.cpus("claimed") != "")
        assert taken(node) == ""

        # A later answer still counts.
        node.kubelet.hangs = False
        node.server.drop_connections()
        await until(lambda: taken(node) == "4-5")
        await until(lambda: node.cpus("claimed") == "4-5")
        assert "claimed" not in node.plugin.state.ledger


async def test_claims_outlive_a_restart_of_the_daemon(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.run("claimed", 2, claims=claim(), env=("DRA_CPUSET_c-1=4-5",))
        table = node.plugin.claims.table
        node.kubelet.hangs = True  # no second confirmation

        text = document("TopologyAwarePolicy", "{}")
        async with running_daemon(
            tmp_path, node.runtime, "1s2n4c1t", text, table=table
        ) as (plugin, _):
            assert str(plugin.machine.online) == "0-3,6-7"
            await until(lambda: "pod-claimed" in plugin.claims.sandboxes)
            assert str(plugin.claims.taken) == "4-5"
            assert set(plugin.claims.table.containers) == {"claimed"}
            assert plugin.claims.undecided == ()


async def test_a_new_daemon_finds_claims_by_the_kubelets_list(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.run("claimed", 2, claims=claim(), env=("DRA_CPUSET_c-1=4-5",))
        await node.run("other", 2)
        text = document("TopologyAwarePolicy", "{}")

        async with running_daemon(tmp_path, node.runtime, "1s2n4c1t", text) as (
            plugin,
            _,
        ):
            await until(lambda: str(plugin.claims.taken) == "4-5")
            assert "claimed" not in plugin.state.ledger


async def test_claims_of_pods_that_went_meanwhile_are_released(tmp_path: Path) -> None:
    gone = CpuClaim("c-0", "dra.cpu", "default/old", CpuSet.parse("6-7"), USERS)
    async with running_node(tmp_path) as node:
        text = document("TopologyAwarePolicy", "{}")
        table = ClaimTable({"c-0": gone})
        async with running_daemon(
            tmp_path, node.runtime, "1s2n4c1t", text, table=table
        ) as (plugin, _):
            await until(lambda: str(plugin.machine.online) == "0-7")
            assert str(plugin.claims.taken) == ""


async def test_a_claim_that_the_configuration_needs_is_a_conflict(
    tmp_path: Path,
) -> None:
    spec = "{reservedResources: {cpu: 'cpuset:0'}}"
    async with running_node(tmp_path, spec=spec) as node:
        await node.run("ours", 1)
        await node.run("claimed", 2, claims=claim(), env=("DRA_CPUSET_c-1=0",))

        assert taken(node) == ""
        assert node.plugin.claims.conflict != ""
        assert "claimed" not in node.plugin.state.ledger

        await node.stop("claimed")
        assert node.plugin.claims.conflict == ""


async def test_a_configuration_without_these_cpus_ends_the_conflict(
    tmp_path: Path,
) -> None:
    spec = "{reservedResources: {cpu: 'cpuset:0'}}"
    async with running_node(tmp_path, spec=spec) as node:
        await node.run("claimed", 2, claims=claim(), env=("DRA_CPUSET_c-1=0",))
        before = taken(node)
        other = document("TopologyAwarePolicy", spec.replace(":0", ":1"))
        reconfigure(node.plugin, parse_config(other))

        assert (before, taken(node)) == ("", "0")
        assert node.plugin.claims.conflict == ""
        assert 0 not in node.plugin.machine.online


async def test_a_trial_of_a_configuration_leaves_cpus_of_claims_alone(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, kind="NonePolicy") as node:
        await node.run("claimed", 2, claims=claim(), env=("DRA_CPUSET_c-1=1-3",))
        await node.run("web", 1)
        text = document("StaticPolicy", "{reservedResources: {cpu: 'cpuset:0'}}")
        other = parse_config(text)
        changes = would_reconfigure(node.plugin, other)
        reconfigure(node.plugin, other)

        assert [(one.id, one.then) for one in changes] == [
            ("web", node.plugin.wanted("web"))
        ]
        assert not changes[0].then.cpus & CpuSet.parse("1-3")


async def test_no_environment_is_kept(tmp_path: Path) -> None:
    entry = "PASSWORD=hunter2"
    async with running_node(tmp_path) as node:
        node.kubelet.hangs = True
        env = (entry, "DRA_CPUSET_c-1=4-5")
        await node.run("waits", 1, env=env, knows=False)
        waiting = repr(node.plugin.claims.__dict__)
        node.kubelet.hangs = False
        node.server.drop_connections()
        await until(lambda: not node.plugin.claims.undecided)

        assert "DRA_CPUSET_c-1" in waiting
        assert "hunter2" not in waiting + repr(node.plugin.claims.__dict__)
        assert "waits" in node.plugin.state.ledger
