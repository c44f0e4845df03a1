"""The picture of a simulation has the CPUs that the policy decided."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.pictures.cpus import colour_of
from nri_resmgr.pictures.svg import picture_svg
from nri_resmgr.scenario.findings import findings_of
from nri_resmgr.scenario.manifests import read_workload
from nri_resmgr.scenario.node import InProcessNode
from nri_resmgr.scenario.picture import picture_of
from nri_resmgr.scenario.play import Player
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import NO_CPUS, CpuSet
from tests.examples import examples
from tests.pictures.seen import Seen, seen

STORY = """
story:
  - {create: db, guaranteed: 2, memory: 1Gi}
  - {create: "a<b>&'\\"", burstable: 100m}
  - {create: huge, guaranteed: 99}
"""
KINDS = ("TopologyAwarePolicy", "BalloonsPolicy", "StaticPolicy", "NonePolicy")
DOCUMENT = "apiVersion: config.nri/v1alpha1\nkind: {}\n"
RESERVES = (
    "apiVersion: config.nri/v1alpha1\nkind: TopologyAwarePolicy\n"
    "spec: {{reservedResources: {{cpu: 'cpuset:{}'}}}}\n"
)

MACHINE = "2s2n4c2t"
ASKS = (
    *("guaranteed: 1", "guaranteed: 3", "guaranteed: 40", "guaranteed: 500m"),
    *("burstable: 200m", "best-effort: 0"),
)


def node(machine: str, document: str = "", story: str = STORY) -> InProcessNode:
    made = InProcessNode(parse_spec(machine), document)
    Player(made).play(read_workload(story))
    return made


def drawn(*nodes: InProcessNode) -> Seen:
    return seen(picture_svg(picture_of(*map(findings_of, nodes))))


def decided(made: InProcessNode) -> dict[str, CpuSet]:
    """Return the CPUs of each container by its title, as the policy has them."""
    plugin = made.plugin
    pins = plugin.policy.pins(plugin.state)
    return {
        entry.spec.title: pins[key].cpus or plugin.machine.online
        for key, entry in plugin.state.ledger.entries.items()
    }


@st.composite
def stories(draw: st.DrawFn) -> str:
    """Draw what some containers ask for; the names of no two are alike."""
    rows = draw(st.lists(st.sampled_from(ASKS), min_size=1, max_size=12))
    lines = (f"  - {{create: {chr(97 + n)}, {ask}}}" for n, ask in enumerate(rows))
    return "\n".join(("story:", *lines))


@examples(0.3)
@given(stories(), st.sampled_from(KINDS))
def test_each_container_has_the_cpus_that_were_decided(story: str, kind: str) -> None:
    made = node(MACHINE, DOCUMENT.format(kind), story)
    found = drawn(made)

    shown = {title: found.cpus_in(found.colour_of(title)) for title in decided(made)}
    assert shown == decided(made)
    assert len(found.words("holder")) == len(shown)


@examples(0.2)
@given(stories())
def test_both_sides_have_what_each_configuration_decided(story: str) -> None:
    before, after = (node(MACHINE, RESERVES.format(cpu), story) for cpu in (0, 15))
    found = drawn(before, after)

    assert found.cpus_with("reserved", "before-cpu") == CpuSet.of(0)
    assert found.cpus_with("reserved", "after-cpu") == CpuSet.of(15)
    for made, plan in ((before, "before-cpu"), (after, "after-cpu")):
        shown = {
            title: found.cpus_in(found.colour_of(title), plan)
            for title in decided(made)
        }
        assert shown == decided(made)


def test_every_container_and_refusal_is_in_the_legend() -> None:
    made = node("2s1d2n2c2t cxl=1x4Gi offline=3")
    found = drawn(made)

    db, odd = findings_of(made).placements
    assert odd.title == "default/pod-of-a<b>&'\"/a<b>&'\""
    assert found.words("holder") == [
        f"{db.title}  (Guaranteed, asks for 2): CPUs {db.cpus}, memory {db.mems}",
        f"{odd.title}  (Burstable, asks for 100m): CPUs {odd.cpus}, memory {odd.mems}",
    ]
    (refusal,) = found.words("note refused")
    assert refusal.startswith("refused: default/pod-of-huge/huge asks for 99 ")
    assert "node 4, 4Gi cxl" in found.words("label")


def test_the_reserved_and_the_exclusive_cpus_are_those_of_the_policy() -> None:
    made = node("1s1n4c1t", RESERVES.format(3))
    found = drawn(made)

    assert found.cpus_with("reserved") == CpuSet.of(3)
    assert found.cpus["cpu3"].title == "CPU 3, reserved: free"
    assert found.cpus_with("exclusive") == findings_of(made).placements[0].exclusive


def test_a_container_that_is_not_pinned_has_its_colour_on_all_cpus() -> None:
    made = node("1s1n4c1t", DOCUMENT.format("NonePolicy"))
    found = drawn(made)

    assert [one.cpus for one in findings_of(made).placements] == [NO_CPUS] * 3
    assert found.cpus_in(colour_of(1)) == CpuSet.parse("0-3")
    assert found.cpus_with("free") == NO_CPUS


def test_what_only_one_configuration_places_is_nowhere_in_the_other() -> None:
    story = "story:\n  - {create: big, guaranteed: 4}\n"
    small = RESERVES.format("0-3")
    found = drawn(node("1s1n6c1t", "", story), node("1s1n6c1t", small, story))

    (line,) = found.words("holder")
    assert line.endswith("after not placed")
    assert found.cpus_in(found.colour_of("default/pod-of-big/big"), "after-cpu") == (
        NO_CPUS
    )
    (refusal,) = found.words("note refused")
    assert refusal.startswith("refused after: default/pod-of-big/big ")


def test_equal_places_are_written_once() -> None:
    made = node("1s1n4c1t")
    found = drawn(made, made)

    assert found.title == (
        "before, TopologyAwarePolicy: 2 containers; "
        "after, TopologyAwarePolicy: 2 containers"
    )
    assert [line.count("CPUs") for line in found.words("holder")] == [1, 1]


def test_the_numbers_of_all_replicas_are_named() -> None:
    story = (
        "story:\n  - run: web\n    replicas: 80\n    containers: [{name: a, requests: "
        "{cpu: 100m}}]\n"
    )
    found = drawn(node(MACHINE, story=story))

    numbers = [
        CpuSet.parse(line.partition("[")[2].partition("]")[0])
        for line in found.words("holder")
    ]
    assert CpuSet.union(numbers) == CpuSet.parse("0-79")
    assert max(len(str(one)) for one in numbers) > 24  # cut in tables


def test_colours_of_neighbours_differ() -> None:
    assert len({colour_of(number) for number in range(60)}) == 60
