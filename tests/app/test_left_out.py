"""CPUs that a document names, and the machine does not have at present."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.plugin.changes.reconfiguration import change_machine, reconfigure
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.config import BadSetting
from nri_resmgr.host.tree import HostTree
from nri_resmgr.policies import parse_config
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.topology.without_cpus import without_cpus
from nri_resmgr.values import CpuSet
from tests.app.node import Node, config, running_node
from tests.host.cpu_trees import MACHINE, intel_pstate, write

# 2 sockets of 4 cores with 2 threads: CPU 0 with 8, and so on.
WHOLE = "2s4c2t"
LESS = f"{WHOLE} offline=1-4,8,12"
RESERVED = "{reservedResources: {cpu: 'cpuset:0,8'}}"
WHY = "CPU 8 is offline; used as soon as it is there"
AVAILABLE = "$.spec.availableResources.cpu"
NO_99 = "this machine has no CPU 99; used as soon as it is there"
TYPE = "$.spec.balloonTypes[0].cpus"
LIST = "$.spec.pools[0].cpuLists[0].cpus"
PATH = "$.spec.reservedResources.cpu"


def reserved(node: Node) -> str:
    """Return the CPUs that are reserved now."""
    pools = node.plugin.policy.pools(node.plugin.state)
    return next(str(pool.cpus) for pool in pools if pool.kind == "reserved")


async def test_a_reserved_cpu_that_goes_is_left_out_until_it_returns(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, WHOLE, RESERVED) as node:
        await node.run("web", 2)
        await node.run("log", 0.2)
        with capture_logs() as lines:
            change_machine(node.plugin, parse_spec(LESS))
        online = parse_spec(LESS).online
        for name in ("db", "cache", "batch"):
            await node.run(name, 2)

        assert [str(one) for one in node.plugin.left_out] == [f"{PATH}: {WHY}"]
        assert [one for one in lines if one["event"] == "configuration.left-out"] == [
            {
                "event": "configuration.left-out",
                "path": PATH,
                "why": WHY,
                "log_level": "error",
            }
        ]
        pins = node.plugin.policy.pins(node.plugin.state)
        assert all(pin.cpus and pin.cpus <= online for pin in pins.values())
        exclusive = node.plugin.policy.exclusive_cpus(node.plugin.state)
        assert [len(cpus) for cpus in exclusive.values()] == [2, 2, 2, 2]

        with capture_logs() as lines:
            change_machine(node.plugin, parse_spec(WHOLE))
        assert node.plugin.left_out == ()
        assert [one["event"] for one in lines if "configuration" in one["event"]] == [
            "configuration.counts-again"
        ]
        assert reserved(node) == "0,8"


async def test_with_no_reserved_cpu_left_the_default_is_reserved(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, WHOLE, RESERVED) as node:
        change_machine(node.plugin, parse_spec(f"{WHOLE} offline=0,8"))

        assert reserved(node) == "1"


async def test_a_document_can_be_changed_while_a_cpu_of_it_is_offline(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, WHOLE, RESERVED) as node:
        change_machine(node.plugin, parse_spec(f"{WHOLE} offline=8"))
        text = config("{reservedResources: {cpu: 'cpuset:1,8'}}")
        reconfigure(node.plugin, parse_config(text))
        with pytest.raises(BadSetting, match="not 99"):
            reconfigure(
                node.plugin, parse_config(config("{reservedResources: {cpu: 99}}"))
            )

        assert reserved(node) == "1"
        assert [str(one) for one in node.plugin.left_out] == [f"{PATH}: {WHY}"]
        text = config("{reservedResources: {cpu: 'cpuset:2,99'}}")
        reconfigure(node.plugin, parse_config(text))

        assert reserved(node) == "2"
        assert [str(one) for one in node.plugin.left_out] == [f"{PATH}: {NO_99}"]


async def test_sizes_that_do_not_fit_any_more_are_left_out(tmp_path: Path) -> None:
    spec = "{reservedResources: {cpu: 12}}"
    async with running_node(tmp_path, WHOLE, spec) as node:
        change_machine(node.plugin, parse_spec(f"{WHOLE} offline=4-15"))

        assert [str(one) for one in node.plugin.left_out] == [
            f"{PATH}: expected 1 to 4 CPUs (available, not isolated), not 12"
        ]
        assert reserved(node) == "0"


async def test_only_settings_that_do_not_fit_are_left_out(tmp_path: Path) -> None:
    spec = "{availableResources: {cpu: 14}, reservedResources: {cpu: 2}}"
    async with running_node(tmp_path, WHOLE, spec) as node:
        change_machine(node.plugin, parse_spec(f"{WHOLE} offline=4-15"))

        assert [str(one) for one in node.plugin.left_out] == [
            f"{AVAILABLE}: expected 1 to 4 CPUs (online, not isolated), not 14"
        ]
        assert len(CpuSet.parse(reserved(node))) == 2


def test_one_balloon_type_is_too_large_and_the_other_stays() -> None:
    text = """
apiVersion: config.nri/v1alpha1
kind: BalloonsPolicy
spec:
  reservedResources: {cpu: 1}
  balloonTypes:
    - {name: a, minCPUs: 6, minBalloons: 2}
    - {name: b, minCPUs: 2, minBalloons: 1}
"""
    policy = ResourcePolicy(parse_spec(WHOLE), parse_config(text))
    change_machine(policy, parse_spec(f"{WHOLE} offline=4-15"))

    (left,) = policy.left_out
    assert left.path == "$.spec.balloonTypes[0].minCPUs"
    sizes = {one.name: len(one.cpus) for one in policy.policy.pools(policy.state)}
    assert sizes["b[0]"] == 2


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        ("StaticPolicy", "{reservedResources: {cpu: 'cpuset:0,99'}}", PATH),
        ("TopologyAwarePolicy", "{reservedResources: {cpu: 'cpuset:99'}}", PATH),
        ("BalloonsPolicy", "{balloonTypes: [{name: a, cpus: '1,99'}]}", TYPE),
        ("StaticPoolsPolicy", "{pools: [{name: a, cpuLists: [{cpus: '1,99'}]}]}", LIST),
    ],
)
def test_a_document_for_a_larger_machine_counts_as_far_as_it_can(
    kind: str, spec: str, path: str
) -> None:
    text = f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {spec}\n"
    with capture_logs() as lines:
        policy = ResourcePolicy(parse_spec(WHOLE), parse_config(text))

    assert policy.policy.kind == kind
    assert [str(one) for one in policy.left_out] == [f"{path}: {NO_99}"]
    assert "configuration.left-out" in [one["event"] for one in lines]


@pytest.mark.parametrize(
    ("machine", "available", "level"),
    [
        pytest.param("1s4c1t", "0-4095", "warning", id="for machines of several sizes"),
        pytest.param("1s4c1t offline=2", "0-4095", "error", id="one is offline"),
        pytest.param("1s4c1t", "64-127", "error", id="none is here"),
    ],
)
def test_a_list_of_available_cpus_may_be_for_larger_machines(
    machine: str, available: str, level: str
) -> None:
    spec = f"{{availableResources: {{cpu: 'cpuset:{available}'}}}}"
    text = f"apiVersion: config.nri/v1alpha1\nkind: StaticPolicy\nspec: {spec}\n"
    with capture_logs() as lines:
        policy = ResourcePolicy(parse_spec(machine), parse_config(text))

    (left,) = policy.left_out
    assert left.path == AVAILABLE
    assert left.is_expected is (level == "warning")
    found = [one for one in lines if one["event"] == "configuration.left-out"]
    assert [one["log_level"] for one in found] == [level]


def test_a_class_that_the_changed_machine_cannot_apply_is_left_out(
    tmp_path: Path,
) -> None:
    text = """
apiVersion: config.nri/v1alpha1
kind: TopologyAwarePolicy
spec:
  reservedResources: {cpu: 1}
  sharedPoolCPUClass: slow
  cpuClasses: [{name: slow, freqGovernor: powersave}]
"""
    write(tmp_path, intel_pstate())
    known = sorted(tmp_path.rglob("scaling_available_governors"))
    before = [one.read_text() for one in known]
    policy = ResourcePolicy(MACHINE, parse_config(text), tree=HostTree(tmp_path))
    for one in known:
        one.write_text("performance\n")
    smaller = without_cpus(MACHINE, CpuSet.of(7))
    change_machine(policy, smaller)

    assert policy.machine == smaller
    (left,) = policy.left_out
    assert left.path == "$.spec.cpuClasses[0].freqGovernor"
    assert left.why.startswith("no governor 'powersave'; available: performance")
    # A new document promises what the machine cannot do.
    with pytest.raises(BadSetting, match="no governor"):
        reconfigure(policy, parse_config(text.replace("cpu: 1", "cpu: 2")))

    for one, words in zip(known, before, strict=True):
        one.write_text(words)
    change_machine(policy, MACHINE)
    assert policy.left_out == ()
