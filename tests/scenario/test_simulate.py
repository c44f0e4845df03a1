"""What a simulation finds is what the node would do."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.config import BadSetting
from nri_resmgr.scenario.compare import FindingChange, changes_between
from nri_resmgr.scenario.findings import Findings, Largest, Spread, findings_of
from nri_resmgr.scenario.manifests import read_workload
from nri_resmgr.scenario.node import InProcessNode
from nri_resmgr.scenario.play import Player
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet
from tests.policy.stories import KINDS, Story, name_of, played_over_socket
from tests.policy.story_outcomes import text_of

MACHINE = "2s1n2c2t numbering=adjacent"  # node 0: cores {0,1} {2,3}; node 1: the rest

WEB = """
  - run: web
    containers: [{name: app, requests: {cpu: 500m}}]
"""
DB = """
  - run: db
    containers: [{name: db, limits: {cpu: %s, memory: 1Gi}}]
"""

RESERVES = "{reservedResources: {cpu: 'cpuset:0'}}"

# Specs of all kinds that have pools.
SPECS = {kind: RESERVES for kind in KINDS.values() if kind != "NonePolicy"}
SPECS["StaticPoolsPolicy"] = "{}"  # its reserved CPUs would be another pool


def found(story: str, spec: str = "{}", machine: str = MACHINE) -> Findings:
    scenario = read_workload(f"spec: {spec}\nstory:{story}")
    node = InProcessNode(parse_spec(machine), scenario.document)
    Player(node).play(scenario)
    return findings_of(node)


def where(one: Findings) -> dict[str, str]:
    return {place.title: str(place.cpus) for place in one.placements}


def test_pods_are_placed_and_the_rest_is_counted() -> None:
    now = found(WEB + DB % 2, RESERVES)

    assert where(now) == {"default/web/app": "6-7", "default/db/db": "4-5"}
    # 1-3 are free, and of 6-7 what half a CPU of web leaves.
    assert now.largest == Largest(anywhere=4, in_socket=3, in_node=3, in_l3=3)
    assert now.stranded == CpuSet.parse("")
    assert (now.spread, now.shared_spread) == (Spread(), Spread())
    assert now.refusals == ()


def test_containers_across_nodes_or_beside_others_are_listed() -> None:
    now = found(DB % 5, RESERVES)

    (db,) = now.placements
    assert now.spread.nodes == now.spread.sockets == ("default/db/db",)
    free = CpuSet.parse("1-7") - db.exclusive
    mates = CpuSet.union(
        core.cpus for core in now.machine.cores if core.cpus & db.exclusive
    )
    assert now.stranded == free & mates


def test_refusals_are_reported_and_the_others_are_placed() -> None:
    now = found(DB % 40 + WEB)

    assert [(one.step, one.title) for one in now.refusals] == [(0, "default/db/db")]
    assert "asks for 40 exclusive CPUs" in now.refusals[0].why
    assert list(where(now)) == ["default/web/app"]


@pytest.mark.parametrize("kind", SPECS)
def test_a_placement_names_the_pool_that_lists_it(kind: str) -> None:
    story = """
  - {create: db, guaranteed: 2}
  - {create: web, burstable: 500m}
  - {create: dns, burstable: 100m, namespace: kube-system}
"""
    now = found(story, f"{SPECS[kind]}\nkind: {kind}")
    listed = {key: pool.name for pool in now.pools for key in pool.containers}

    assert len(listed) == len(now.placements) == 3
    assert {one.id: one.pool for one in now.placements} == listed


def test_replicas_come_and_go_together() -> None:
    many = WEB.replace("run: web", "run: web\n    replicas: 3")

    assert list(where(found(many))) == [f"default/web-{n}/app" for n in range(3)]
    assert where(found(many + "\n  - {delete: web}\n")) == {}


def test_init_containers_have_ended_when_the_others_run() -> None:
    story = (
        DB % 2 + "    initContainers: [{name: first, limits: {cpu: 2, memory: 1Gi}}]"
    )

    assert list(where(found(story))) == ["default/db/db"]


def test_a_configuration_that_is_wrong_is_a_refusal_and_changes_nothing() -> None:
    before = found(WEB)
    after = found(WEB + "  - {reconfigure: {reservedResources: {cpu: 900}}}\n")

    assert where(after) == where(before)
    assert [one.title for one in after.refusals] == ["configuration"]


def test_a_restart_moves_no_container() -> None:
    for how in ("remembering", "forgetting"):
        after = found(WEB + DB % 2 + f"\n  - {{restart: {how}}}\n")

        assert where(after) == where(found(WEB + DB % 2))


def test_time_that_passes_ends_a_cold_start() -> None:
    story = """
  - run: web
    annotations: {cold-start.resource-policy.nri.io/container.app: "duration: 60s",
                  memory-type.resource-policy.nri.io/container.app: "dram,pmem"}
    containers: [{name: app, limits: {cpu: 1, memory: 1Gi}}]
  - {wait: %s}
"""
    machine = "1s2c pmem=1x64Gi"

    early, late = (found(story % time, machine=machine) for time in (30, 61))

    assert str(early.placements[0].mems) == "1"
    assert str(late.placements[0].mems) == "0-1"


@pytest.mark.parametrize(
    ("story", "sentence"),
    [
        pytest.param(
            "\n  - {stop: x}", "$.story[0]: there is no container 'x'", id="x"
        ),
        pytest.param("\n  - {delete: x}", "$.story[0]: no step has run 'x'", id="none"),
        pytest.param(WEB + WEB, "$.story[1]: 'web' runs already", id="twice"),
    ],
)
def test_a_step_that_cannot_happen_is_a_mistake(story: str, sentence: str) -> None:
    with pytest.raises(BadSetting) as raised:
        found(story)

    assert sentence in str(raised.value)


def test_two_configurations_are_compared() -> None:
    one = found(DB % 2, RESERVES)
    two = found(DB % 2, "{reservedResources: {cpu: 'cpuset:4'}}")

    changes = changes_between(one, two)

    assert changes_between(one, one) == ()
    assert FindingChange(0, "default/db/db", "cpus", "4-5", "0-1") in changes


# All of one policy, and a few of each other one.
SIMULATED = [
    path
    for kind in KINDS
    for path in played_over_socket(kind)[: None if kind == "topology-aware" else 3]
]


def test_stories_of_all_kinds_are_simulated() -> None:
    assert {path.parent.name for path in SIMULATED} == KINDS.keys()


@pytest.mark.parametrize("path", SIMULATED, ids=name_of)
def test_a_simulation_decides_as_the_plugin_behind_a_socket(path: Path) -> None:
    """The same stories are played through a runtime in tests/app."""
    story = Story.read(path)
    node = InProcessNode(parse_spec(story.scenario.machine), story.document)

    for number in Player(node).steps(story.scenario):
        row = story.rows[number]
        refused = [one for one in node.notes.refusals if one.step == number]
        if "gets" in row:
            name = row.get("create") or row["update"]
            pin = node.plugin.policy.pins(node.plugin.state)[name]
            assert (row, text_of(pin)) == (row, row["gets"])
        assert (row, len(refused)) == (row, int("refused" in row))
