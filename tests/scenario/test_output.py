"""The output of a simulation: replicas, estimates, and why CPUs are shared."""

from __future__ import annotations

import json

import pytest

from nri_resmgr.cli.render_findings import show_changes, show_findings
from nri_resmgr.pictures.svg import picture_svg
from nri_resmgr.scenario.findings import Findings, findings_of
from nri_resmgr.scenario.manifests import read_workload
from nri_resmgr.scenario.node import InProcessNode
from nri_resmgr.scenario.picture import picture_of
from nri_resmgr.scenario.play import Player
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet
from tests.pictures.seen import seen
from tests.policy.stories import KINDS

MACHINE = "2s1n4c2t"

WEB = """
  - run: web
    replicas: %s
    containers: [{name: app, %s}]
"""


def found(story: str, document: str = "", machine: str = MACHINE) -> Findings:
    scenario = read_workload(f"{document}\nstory:{story}")
    node = InProcessNode(parse_spec(machine), scenario.document)
    Player(node).play(scenario)
    return findings_of(node)


def rows(one: Findings, output: str = "table") -> list[str]:
    """Return the first cells of the first table."""
    table = show_findings(one, output).split("\n\n")[1]
    return [line.split()[0] for line in table.splitlines()[1:]]


def shared(one: Findings) -> dict[str, str]:
    """Return why Guaranteed containers share CPUs, as the table has it."""
    title = "Guaranteed, but without exclusive CPUs"
    for section in show_findings(one, "table").split("\n\n"):
        head, *lines = section.splitlines()
        if head == title:
            return dict(line.strip().split(": ", 1) for line in lines)
    return {}


def test_replicas_with_equal_results_are_one_row() -> None:
    now = found(WEB % (5, "requests: {cpu: 100m}"), machine="1s1n4c1t")

    assert rows(now) == ["default/web-[0-4]/app"]
    assert rows(now, "wide") == [f"default/web-{n}/app" for n in range(5)]
    titles = [
        one["title"] for one in json.loads(show_findings(now, "json"))["containers"]
    ]
    assert titles == rows(now, "wide")


def test_replicas_with_cpus_of_their_own_are_rows_of_their_own() -> None:
    now = found(WEB % (2, "limits: {cpu: 2, memory: 1Gi}"))

    assert rows(now) == ["default/web-0/app", "default/web-1/app"]


def test_refusals_of_replicas_are_one_sentence() -> None:
    now = found(WEB % (7, "limits: {cpu: 5, memory: 1Gi}"))

    section = show_findings(now, "table").split("refused\n")[1].split("\n\n")[0]
    assert len(now.refusals) > 1
    assert section.startswith(
        f"  default/web-[{7 - len(now.refusals)}-6]/app asks for 5"
    )
    assert section.count("\n") == 0
    wide = show_findings(now, "wide").split("refused\n")[1].split("\n\n")[0]
    assert wide.count("asks for 5") == len(now.refusals)


def test_spread_replicas_are_named_together() -> None:
    now = found(WEB % (3, "requests: {cpu: 500m, memory: 1Gi}"), machine="2s2n2c2t")

    line = show_findings(now, "table").rsplit("\n\n", 1)[1]
    assert now.shared_spread.nodes == tuple(f"default/web-{n}/app" for n in range(3))
    assert line == "shared CPUs in several NUMA nodes: 3 (default/web-[0-2]/app)"


def test_changes_of_replicas_are_one_row() -> None:
    story = WEB % (3, "requests: {cpu: 100m}")
    one, two = (
        found(
            story, f"spec: {{reservedResources: {{cpu: 'cpuset:{cpu}'}}}}", "1s1n4c1t"
        )
        for cpu in (0, 3)
    )

    table, differ = show_changes(one, two, "table")
    assert differ
    assert table.splitlines()[1].split() == [
        "default/web-[0-2]/app",
        "cpus",
        "1-3",
        "0-2",
    ]
    assert len(json.loads(show_changes(one, two, "json")[0])["changes"]) == 3


def test_changed_refusals_of_replicas_are_one_sentence() -> None:
    story = WEB % (3, "limits: {cpu: 8, memory: 1Gi}")
    large, small = found(story, machine="4s1n4c2t"), found(story, machine="1s1n4c2t")

    table, _ = show_changes(large, small, "table")
    sentences = table.split("\nrefused\n")[1]
    assert "default/web-[0-2]/app  refused" in table
    assert sentences.count("default/web") == 1


def test_replicas_have_one_colour_and_one_line_in_the_picture() -> None:
    nine = found(WEB % (9, "requests: {cpu: 100m}"), machine="1s1n4c1t")
    drawn = seen(picture_svg(picture_of(nine)))

    (line,) = drawn.words("holder")
    title = "default/web-[0-8]/app"
    assert line.startswith(f"{title}  (Burstable, asks for 100m)")
    assert drawn.cpus["cpu1"].title == f"CPU 1: {title}"
    assert drawn.cpus_in(drawn.colour_of(title)) == CpuSet.parse("1-3")
    assert drawn.title == "TopologyAwarePolicy: 9 containers"


def test_estimated_memory_is_marked_with_the_reason() -> None:
    now = found(WEB % (1, "requests: {cpu: 100m, memory: 1Gi}"), machine="1s1n4c1t")

    ((estimate,),) = (one.estimates for one in now.placements)
    sections = show_findings(now, "table").split("\n\n")
    assert sections[1].splitlines()[1].split()[3].startswith("~")
    # A thousandth of 16 GiB, in whole MiB.
    assert sections[2] == f"~ memory: {estimate.why}"
    assert estimate.why.endswith("up to 17 MiB too low")


def test_exact_amounts_are_not_marked() -> None:
    announced = """
  - pod: p
    expects: {app: {burstable: 100m, memory: 1Gi}}
  - {create: a, name: app, burstable: 100m, memory: 1Gi, pod: p}
"""
    exact = WEB % (1, "limits: {cpu: 2, memory: 1Gi}")
    for story in (exact, announced, WEB % (1, "requests: {cpu: 1}")):
        now = found(story)

        assert [one.estimates for one in now.placements] == [()]
        assert "~" not in show_findings(now, "table")


def test_parts_of_the_amounts_of_a_pod_are_marked() -> None:
    story = """
  - run: web
    resources: {limits: {cpu: 4, memory: 4Gi}}
    containers: [{name: a}, {name: b}]
"""
    now = found(story)

    assert {mark.amount for one in now.placements for mark in one.estimates} == {
        "cpu",
        "memory",
    }
    marked = show_findings(now, "table").split("\n\n")[1].splitlines()[2].split()
    assert marked[2].startswith("~")


def test_a_guaranteed_container_without_exclusive_cpus_has_the_reason() -> None:
    story = """
  - run: web
    containers:
      - {name: whole, limits: {cpu: 2, memory: 1Gi}}
      - {name: half, limits: {cpu: 2500m, memory: 1Gi}}
      - {name: small, limits: {cpu: 500m, memory: 1Gi}}
  - run: dns
    namespace: kube-system
    containers: [{name: dns, limits: {cpu: 1, memory: 1Gi}}]
  - run: asked
    annotations: {prefer-shared-cpus.resource-policy.nri.io/pod: "true"}
    containers: [{name: x, limits: {cpu: 2, memory: 1Gi}}]
  - run: other
    containers: [{name: x, requests: {cpu: 2}}]
"""
    whole = "it does not ask for whole CPUs, so it shares some; to help, ask for"

    assert shared(found(story)) == {
        "default/web/half": f"{whole} 3 whole CPUs",
        "default/web/small": f"{whole} 1 whole CPU",
        "kube-system/dns/dns": "its namespace runs on the reserved CPUs",
        "default/asked/x": "it asks for shared CPUs",
    }


def test_help_is_named_only_where_it_helps() -> None:
    story = WEB % (1, "limits: {cpu: 6500m, memory: 1Gi}")
    machine = "1s1n4c2t"  # one CPU is reserved, and seven are left

    (room,) = shared(found(story, machine=machine)).values()
    taken = "\n  - {create: db, guaranteed: 1}" + story.replace("6500m", "5500m") * 1
    less = taken + "\n  - {create: dc, burstable: 500m}"
    (none,) = shared(found(less, machine=machine)).values()

    assert room.endswith("; to help, ask for 7 whole CPUs")
    assert none == "it does not ask for whole CPUs, so it shares some"


def test_replicas_that_share_have_one_reason() -> None:
    now = found(WEB % (40, "limits: {cpu: 100m, memory: 1Mi}"))

    assert list(shared(now)) == ["default/web-[0-39]/app"]


def test_a_container_that_fell_back_has_the_refusal_as_the_reason() -> None:
    document = "spec: {onFailure: shared}"
    now = found(WEB % (1, "limits: {cpu: 40, memory: 1Gi}"), document)

    (why,) = shared(now).values()
    assert why.startswith("its request cannot be granted, so it shares CPUs: ")
    assert ": it asks for 40 exclusive CPUs" in why


@pytest.mark.parametrize("restart", ["remembering", "forgetting"])
def test_a_restart_keeps_the_reason(restart: str) -> None:
    story = WEB % (1, "limits: {cpu: 500m, memory: 1Gi}")
    now = found(story + f"  - {{restart: {restart}}}\n")

    assert shared(now) == shared(found(story))


def test_a_container_alone_in_its_balloon_has_exclusive_cpus() -> None:
    document = """
kind: BalloonsPolicy
spec: {reservedResources: {cpu: 1}, balloonTypes: [{name: b, namespaces: [default]}]}
"""
    (alone,) = found(WEB % (1, "limits: {cpu: 2, memory: 1Gi}"), document).placements

    assert alone.exclusive == alone.cpus
    assert len(alone.cpus) == 2


def test_containers_of_one_balloon_share_it() -> None:
    document = """
kind: BalloonsPolicy
spec: {reservedResources: {cpu: 1}, balloonTypes: [{name: b, namespaces: [default]}]}
"""
    alone = found(WEB % (1, "limits: {cpu: 2, memory: 1Gi}"), document)
    both = found(WEB % (2, "limits: {cpu: 2, memory: 1Gi}"), document)

    assert shared(alone) == {}
    assert [why.rsplit("; ", 1)[-1] for why in shared(both).values()] == [
        "it shares b[0] with 1 other container"
    ] * len(shared(both))
    assert shared(both)


@pytest.mark.parametrize("kind", KINDS.values())
def test_each_shared_guaranteed_container_of_any_policy_has_a_reason(kind: str) -> None:
    story = (
        WEB % (2, "limits: {cpu: 500m, memory: 1Gi}")
        + """
  - {create: a, guaranteed: 1}
  - {create: b, guaranteed: 2, namespace: kube-system}
  - {create: c, burstable: 2}
  - {restart: forgetting}
"""
    )
    spec = (
        ""
        if kind in ("NonePolicy", "StaticPoolsPolicy")
        else "reservedResources: {cpu: 1}"
    )
    now = found(story, f"kind: {kind}\nspec: {{{spec}}}")

    for one in now.placements:
        is_shared = one.qos.value == "Guaranteed" and not one.exclusive
        assert (one.title, bool(one.why_shared)) == (one.title, is_shared)
