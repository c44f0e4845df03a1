"""New pods are dealt to the nodes of a cluster that can grant them."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nri_resmgr.scenario.dealing import DealtPods, PlayedNode, deal
from nri_resmgr.scenario.findings import PlacedContainer, findings_of
from nri_resmgr.scenario.node import InProcessNode
from nri_resmgr.scenario.play import Player
from nri_resmgr.scenario.pods import qos_of
from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.scenario.steps import RunPods, Scenario
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, MilliCpus

MACHINES = ("1s1n2c2t", "1s2n2c1t", "2s1n3c2t")
GIB = Bytes(1 << 30)


class CountingNode(PlayedNode):
    """Counts the pods that it was asked for."""

    asked = 0

    def try_to_run(self, pod: RunPods, number: int) -> str:
        """Count, and try."""
        self.asked += 1
        return super().try_to_run(pod, number)


def template(name: str, *cpus: int, replicas: int = 1) -> RunPods:
    """Return Guaranteed pods with a container for each of *cpus*."""
    rows = {}
    for number, cpu in enumerate(cpus):
        amount = MilliCpus(cpu * 1000)
        row = ContainerRow(request=amount, limit=amount, memory=GIB, memory_limit=GIB)
        rows[f"c{number}"] = replace(row, qos=qos_of([row]))
    return RunPods(name, rows, replicas=replicas)


def played(name: str, machine: str, *steps: RunPods) -> CountingNode:
    node = InProcessNode(parse_spec(machine), "")
    Player(node).play(Scenario("", "", steps))
    return CountingNode(name, node, len(steps))


def dealt(steps: Sequence[RunPods], nodes: Sequence[PlayedNode]) -> list[DealtPods]:
    done: list[None] = []
    found = list(deal(steps, nodes, lambda: done.append(None)))

    assert len(done) == sum(step.replicas for step in steps)
    return found


def placements(node: InProcessNode) -> list[PlacedContainer]:
    return [replace(one, step=0) for one in findings_of(node).placements]


def test_pods_spread_over_the_nodes_in_turn() -> None:
    nodes = [played(name, "1s1n4c1t") for name in ("a", "b", "c")]

    found = dealt(
        [template("one", 1, replicas=2), template("two", 1, replicas=2)], nodes
    )

    assert found == [
        DealtPods("default/one", 2, {"a": 1, "b": 1}),
        DealtPods("default/two", 2, {"c": 1, "a": 1}),
    ]


def test_the_steps_of_a_node_go_on_with_the_templates() -> None:
    node = played("a", "1s1n8c1t", template("old", 1))

    dealt([template("one", 1, replicas=2), template("two", 1)], [node])

    steps = {one.title: one.step for one in findings_of(node.node).placements}
    assert steps == {
        "default/old/c0": 0,
        "default/one-0/c0": 1,
        "default/one-1/c0": 1,
        "default/two/c0": 2,
    }


def test_a_full_node_is_passed_over() -> None:
    nodes = [played("full", "1s1n2c1t", template("old", 1)), played("free", "1s1n8c1t")]

    (found,) = dealt([template("web", 1, replicas=3)], nodes)

    assert found == DealtPods("default/web", 3, {"free": 3})
    assert [findings_of(one.node).refusals for one in nodes] == [(), ()]


def test_pods_that_no_node_grants_have_the_reason() -> None:
    nodes = [played("a", "1s1n4c1t"), played("b", "1s1n4c1t")]

    (found,) = dealt([template("web", 3, replicas=4)], nodes)

    assert (found.granted, found.refused) == ({"a": 1, "b": 1}, 2)
    assert found.why.startswith("default/web-2/c0 asks for 3 exclusive CPUs")


def test_a_pod_runs_whole_or_not_at_all() -> None:
    """Its first container would fit on the first node."""
    nodes = [played("a", "1s1n4c1t"), played("b", "1s1n8c1t")]

    (found,) = dealt([template("web", 2, 3)], nodes)

    assert found == DealtPods("default/web", 1, {"b": 1})
    assert (nodes[0].node.pods, nodes[0].node.containers) == ({}, {})
    assert placements(nodes[0].node) == []
    assert len(placements(nodes[1].node)) == 2


@given(
    machines=st.lists(st.sampled_from(MACHINES), min_size=1, max_size=3),
    old=st.lists(st.integers(1, 2), max_size=3),
    cpus=st.lists(
        st.tuples(
            st.lists(st.integers(1, 4), min_size=1, max_size=2), st.integers(1, 6)
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_a_node_is_as_if_it_had_its_pods_alone(
    machines: list[str], old: list[int], cpus: list[tuple[list[int], int]]
) -> None:
    before = [template(f"old-{n}", cpu) for n, cpu in enumerate(old)]
    new = [
        template(f"new{n}", *each, replicas=replicas)
        for n, (each, replicas) in enumerate(cpus)
    ]
    nodes = [played(f"n{n}", spec, *before) for n, spec in enumerate(machines)]

    found = dealt(new, nodes)

    pods = {name: step for step in new for name in step.pod_names}
    for node, spec in zip(nodes, machines, strict=True):
        own = [pod.name for pod in node.node.pods.values() if pod.name in pods]
        runs = [replace(pods[name], name=name, replicas=1) for name in own]
        alone = played("alone", spec, *before, *runs)
        assert placements(node.node) == placements(alone.node)
        assert [one.granted.get(node.name, 0) for one in found] == [
            sum(name in step.pod_names for name in own) for step in new
        ]
        # Another pod of a template that has some left finds no room there.
        for step, one in zip(new, found, strict=True):
            if step is new[-1] and one.refused:
                assert alone.try_to_run(replace(step, name="more", replicas=1), 9)
    assert sum(one.asked for one in nodes) <= sum(step.replicas for step in new) + len(
        nodes
    ) * len(new)
