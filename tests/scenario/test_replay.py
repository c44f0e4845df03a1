"""What was recorded is decided again, and only what is other now differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_proto import NriLevel
from nri_resmgr.app.plugin.changes.rebalancing import rebalance
from nri_resmgr.app.plugin.changes.reconfiguration import change_machine
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.policy.events import Pin, Rebalance
from nri_resmgr.recordings.entries import Decided, Rebalancing
from nri_resmgr.scenario.differences import Replacements
from nri_resmgr.scenario.kubelet import container_of, pod_of
from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.topology import Machine
from nri_resmgr.topology.hints import Hint, complete_hints
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, MilliCpus, NodeSet, QosClass
from tests.scenario.recorded import (
    CONTAINERD,
    MACHINE,
    NAME,
    SAFE,
    RecordedNode,
    churn,
    document,
    load,
    recorded_node,
    replayed,
)
from tests.waiting import until

pytestmark = pytest.mark.slow


STRICT = document("{reservedResources: {cpu: 'cpuset:0'}}")
BALLOONS = document("{balloonTypes: [{name: all, maxCPUs: 4}]}", "BalloonsPolicy")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("text", "release"),
    [
        pytest.param(STRICT, CONTAINERD, id="unsolicited updates"),
        pytest.param(
            STRICT, (NriLevel(0, 6), "containerd"), id="updates ride on replies"
        ),
        pytest.param(STRICT, (SAFE, "cri-o"), id="also at CRI-O"),
        pytest.param(BALLOONS, CONTAINERD, id="balloons"),
    ],
)
async def test_nothing_differs_where_nothing_is_other(
    seed: int, text: str, release: tuple[NriLevel, str], tmp_path: Path
) -> None:
    async with recorded_node(tmp_path, text, release=release) as node:
        await churn(node.runtime, seed, 25)
        node.configure(document())
        await churn(node.runtime, seed + 100, 15)
        change_machine(node.plugin, parse_spec("2s2n2c2t offline=3 pmem=1x64Gi"))
        await churn(node.runtime, seed + 200, 15)

    outcome = await replayed(node.file)

    assert outcome.differences == ()
    assert outcome.requests > 50
    assert outcome.decisions > 20
    assert load(node.file).cut == ""


async def test_a_dry_run_is_compared_by_its_decisions_and_refusals(
    tmp_path: Path,
) -> None:
    async with recorded_node(
        tmp_path, STRICT, plugin_options=PluginOptions(dry_run=True)
    ) as node:
        await churn(node.runtime, 1, 30)

    same = await replayed(node.file)
    other = await replayed(node.file, Replacements(document("{pinCPU: false}")))

    none = await replayed(node.file, Replacements(machine=parse_spec("1s1n1c1t")))

    assert same.differences == ()
    assert {one.what for one in other.differences} >= {"cpus"}
    assert [one.what for one in none.differences].count("refused") > 1


def pin_of(node: RecordedNode) -> Pin:
    pin: Pin = node.plugin.policy.pins(node.plugin.state)["c"]
    return pin


async def one_container(folder: Path, cpus: int) -> Path:
    asks = ContainerRow(
        qos=QosClass.GUARANTEED, request=MilliCpus(1000 * cpus), memory=Bytes(1 << 30)
    )
    async with recorded_node(folder, STRICT) as node:
        await node.runtime.run_pod(pod_of("p", asks))
        made = container_of("c", asks, Bytes(1 << 36))
        await node.runtime.create_container("p", made)
        await node.runtime.stop_pod("p")
    return node.file


async def test_another_configuration_shows_where_containers_would_be(
    tmp_path: Path,
) -> None:
    file = await one_container(tmp_path, 2)

    outcome = await replayed(
        file, Replacements(document("{availableResources: {cpu: 'cpuset:4-7'}}"))
    )

    cpus = [one for one in outcome.differences if one.what == "cpus"]
    assert [one.title for one in cpus] == ["default/p/c"]
    assert set(cpus[0].now) <= set("4567-,")
    assert cpus[0].recorded != cpus[0].now


async def test_what_would_be_refused_is_reported_once_with_its_sentence(
    tmp_path: Path,
) -> None:
    file = await one_container(tmp_path, 6)

    outcome = await replayed(file, Replacements(machine=parse_spec("1s1n4c1t")))

    (refused,) = outcome.differences
    assert (refused.title, refused.what) == ("default/p/c", "refused")
    assert refused.recorded == ""
    assert "asks for 6 exclusive CPUs" in refused.now


async def test_a_configuration_that_does_not_fit_the_machine_is_a_difference(
    tmp_path: Path,
) -> None:
    async with recorded_node(tmp_path, STRICT) as node:
        node.configure(document("{reservedResources: {cpu: 15}}"))

    outcome = await replayed(node.file, Replacements(machine=parse_spec("1s1n4c1t")))

    (one,) = outcome.differences
    assert (one.title, one.what, one.recorded) == ("node", "configuration", "accepted")
    assert "15" in one.now


async def test_cold_starts_end_in_the_time_of_the_recording(tmp_path: Path) -> None:
    domain = "resource-policy.nri.io/container.c"
    asks = ContainerRow(
        qos=QosClass.GUARANTEED,
        request=MilliCpus(1000),
        memory=Bytes(1 << 30),
        annotations={
            f"cold-start.{domain}": "duration: 1s",
            f"memory-type.{domain}": "dram,pmem",
        },
    )
    async with recorded_node(tmp_path, STRICT) as node:
        await node.runtime.run_pod(pod_of("p", asks))
        made = container_of("c", asks, Bytes(1 << 36))
        await node.runtime.create_container("p", made)
        # The test runtime's clock stands in the past, so that this is soon over.
        await node.runtime.start_container("c")
        await until(
            lambda: len(node.plugin.policy.pins(node.plugin.state)["c"].mems) > 1
        )
        await node.runtime.run_pod(pod_of("q", asks))

    ends = [one for one in load(node.file).entries if isinstance(one, Decided)]
    assert "ColdStartEnded" in {one.event for one in ends}
    assert (await replayed(node.file)).differences == ()


async def test_a_rebalance_is_repeated(tmp_path: Path) -> None:
    large = ContainerRow(
        qos=QosClass.GUARANTEED, request=MilliCpus(4000), memory=Bytes(1 << 30)
    )
    small = ContainerRow()
    rows = {"x": large, "y": large, "z": large, "a": small, "b": small}
    async with recorded_node(tmp_path, STRICT) as node:
        for name, asks in rows.items():
            await node.runtime.run_pod(pod_of(name, asks))
            made = container_of(name, asks, Bytes(1 << 36))
            await node.runtime.create_container(name, made)
        for name in "xyz":
            await node.runtime.stop_pod(name)
        decision = rebalance(node.plugin, Rebalance(5, {0: 10}))
        await node.runtime.run_pod(pod_of("c", small))
        made = container_of("c", small, Bytes(1 << 36))
        await node.runtime.create_container("c", made)

    assert decision.reasons
    assert Rebalancing in {type(one) for one in load(node.file).entries}
    assert (await replayed(node.file)).differences == ()


class NicAtNode3:
    """Says that all containers use the same network card."""

    def of(
        self, _container: object, machine: Machine, *_: object, **__: object
    ) -> tuple[Hint, ...]:
        return complete_hints([Hint("nic", nodes=NodeSet.of(3))], machine)

    def pods_come(self) -> None:
        """It stays where it is."""


async def test_what_the_host_reported_of_devices_is_known_to_a_replay(
    tmp_path: Path,
) -> None:
    asks = ContainerRow(
        qos=QosClass.GUARANTEED, request=MilliCpus(2000), memory=Bytes(1 << 30)
    )
    plugin_options = PluginOptions(hints=NicAtNode3())
    async with recorded_node(tmp_path, STRICT, plugin_options=plugin_options) as node:
        await node.runtime.run_pod(pod_of("p", asks))
        made = container_of("c", asks, Bytes(1 << 36))
        await node.runtime.create_container("p", made)
        pin = pin_of(node)

    assert pin.cpus <= parse_spec(MACHINE).node(3).cpus
    assert (await replayed(node.file)).differences == ()


async def test_what_would_have_been_refused_is_not_there_after_a_restart(
    tmp_path: Path,
) -> None:
    big, small = (
        ContainerRow(
            qos=QosClass.GUARANTEED, request=MilliCpus(cpus), memory=Bytes(1 << 30)
        )
        for cpus in (6000, 2000)
    )
    async with recorded_node(tmp_path, STRICT) as node:
        for name, asks in (("big", big), ("small", small)):
            await node.runtime.run_pod(pod_of(name, asks))
            made = container_of(f"c-{name}", asks, Bytes(1 << 36))
            await node.runtime.create_container(name, made)
        await node.runtime.stop()
        await node.runtime.start()
        await node.runtime.synchronized(NAME)
        await node.runtime.stop_pod("big")

    outcome = await replayed(node.file, Replacements(machine=parse_spec("1s1n4c1t")))

    found = {(one.title, one.what) for one in outcome.differences}
    assert ("default/big/c-big", "refused") in found
    assert {title for title, what in found if what != "refused"} <= {
        "default/small/c-small"
    }
