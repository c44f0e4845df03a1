"""Pictures of a daemon's answers: the decided CPUs, and the pools considered."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.cli.pictures_of_daemon import picture_of_explanation
from nri_resmgr.control.explain import explanation_of
from nri_resmgr.control.node_picture import picture_of_state
from nri_resmgr.control.state import state_of
from nri_resmgr.pictures.floorplan import WIDEST
from nri_resmgr.pictures.svg import picture_svg
from nri_resmgr.values import NO_CPUS, CpuSet
from nri_resmgr.values.printable import printable
from tests.cli.command import nri_resmgr
from tests.control.daemon_parts import Parts, asking, make_parts
from tests.examples import examples
from tests.pictures.seen import Seen, seen

KINDS = ("TopologyAwarePolicy", "BalloonsPolicy", "NonePolicy")
DOCUMENT = (
    "apiVersion: config.nri/v1alpha1\nkind: {}\n"
    "spec: {{reservedResources: {{cpu: 1}}}}\n"
)
PINS_NOTHING = "apiVersion: config.nri/v1alpha1\nkind: NonePolicy\n"


def document(kind: str) -> str:
    return PINS_NOTHING if kind == "NonePolicy" else DOCUMENT.format(kind)


def node_drawn(parts: Parts) -> Seen:
    picture = picture_of_state(state_of(parts.daemon), parts.policy.machine)
    return seen(picture_svg(picture))


def explained(parts: Parts, pod: str, container: str = "") -> Seen:
    answer = explanation_of(parts.daemon, pod, container)
    state, machine = state_of(parts.daemon), parts.policy.machine
    return seen(picture_svg(picture_of_explanation(answer, state, machine)))


def decided(parts: Parts) -> dict[str, CpuSet]:
    """Return the CPUs of each container by its title, as the policy has them."""
    policy = parts.policy
    pins = policy.policy.pins(policy.state)
    return {
        entry.spec.title: pins[key].cpus or policy.machine.online
        for key, entry in policy.state.ledger.entries.items()
    }


def make_node(kind: str = KINDS[0], machine: str = "1s2n4c1t") -> Parts:
    parts = make_parts(machine, document(kind))
    parts.run("own", 2)
    parts.run("mixed", 1.5)
    return parts


@examples(0.2)
@given(
    st.lists(st.sampled_from([1, 2, 3, 0.5, 1.5, 40]), max_size=10),
    st.sampled_from(KINDS),
)
def test_each_container_has_the_cpus_that_were_decided(
    asks: list[float], kind: str
) -> None:
    parts = make_parts("2s2n4c2t", document(kind))
    for number, cpus in enumerate(asks):
        parts.run(f"web-{number}", cpus)
    found = node_drawn(parts)

    shown = {title: found.cpus_in(found.colour_of(title)) for title in decided(parts)}
    assert shown == decided(parts)
    assert len(found.words("holder")) == len(shown)


@pytest.mark.parametrize(
    "machine", ["2s4n16c2t memory=64Gi", "1s1n256c1t memory=512Gi"]
)
def test_400_containers_on_256_cpus_fit_a_screen_and_are_all_named(
    machine: str,
) -> None:
    parts = make_parts(machine)
    for number in range(400):
        parts.run(f"web-{number}", 0.5)
    found = node_drawn(parts)

    assert len(decided(parts)) == 400
    assert found.width <= WIDEST + 24
    assert len(found.words("holder")) == 400
    named = {
        title
        for one in found.cpus.values()
        for title in one.title.partition(": ")[2].split(", ")
    }
    assert named - {"free"} == decided(parts).keys()


def test_reserved_and_exclusive_cpus_are_marked() -> None:
    parts = make_node()
    found = node_drawn(parts)

    assert found.cpus_with("reserved") == CpuSet.parse(
        state_of(parts.daemon)["cpus"]["reserved"]
    )
    assert found.cpus_with("exclusive") == CpuSet.parse("1,4-5")
    assert found.title == "TopologyAwarePolicy: 2 containers"
    mixed, own = found.words("holder")
    assert mixed == (
        "shop/mixed/main  (Guaranteed, asks for 1500m): CPUs 1-3 (exclusive: 1), "
        "memory 0, pool NUMA node #0"
    )
    assert own == (
        "shop/own/main  (Guaranteed, asks for 2): CPUs 4-5 (exclusive: 4-5), "
        "memory 1, pool NUMA node #1"
    )


def test_hostile_names_are_escaped() -> None:
    name = "<script>\x1b[8m\u202e&'\""
    parts = make_parts()
    parts.run(name, 2)

    for found in (node_drawn(parts), explained(parts, f"shop/{name}")):
        (line,) = found.words("holder")
        assert line.startswith(printable(f"shop/{name}/main  "))


def test_claims_and_reservations_hold_their_cpus() -> None:
    parts = make_parts()
    state = state_of(parts.daemon)
    state["cpuClaims"]["claims"] = [
        {"name": "c", "driver": "d", "cpus": "1", "containers": []}
    ]
    state["preparedClaims"] = [
        {"namespace": "n", "name": "p", "cpus": "2", "containers": []},
        {"namespace": "n", "name": "used", "cpus": "3", "containers": ["id"]},
    ]
    place = {"namespace": "n", "pod": "p", "name": "late", "cpus": "4"}
    state["reservations"] = [place, place | {"name": "(overhead)", "cpus": ""}]
    found = seen(picture_svg(picture_of_state(state, parts.policy.machine)))

    assert found.words("holder") == [
        "n/p/late  (not created yet): CPUs 4",
        "n/p (overhead)  (reserved): a part of the shared CPUs",
        "claim c of d  (for no container at present): CPUs 1",
        "claim n/p  (for no container at present): CPUs 2",
    ]
    assert found.cpus_with("exclusive") == CpuSet.of(1, 2, 4)


def test_the_pools_considered_are_shown_and_the_chosen_one_is_outlined() -> None:
    parts = make_node()
    found, answer = explained(parts, "own"), explanation_of(parts.daemon, "own", "")

    (one,) = answer["containers"]
    names = [f"{n}. {row['pool']}" for n, row in enumerate(one["candidates"], 1)]
    assert names == ["1. NUMA node #1", "2. socket #0"]
    (chosen,) = found.words("pool chosen")
    assert chosen == (
        "1. NUMA node #1 (chosen): CPUs 4-7; better than those below because "
        "fewer memory nodes are needed"
    )
    assert found.words("pool") == [
        "2. socket #0: CPUs 0-7; the others had not enough free CPU"
    ]
    assert found.cpus_with("chosen") == CpuSet.parse("4-7")
    assert found.cpus_in(found.colour_of("shop/own/main")) == CpuSet.parse("4-5")
    assert found.cpus["cpu1"].title == "CPU 1: shop/mixed/main"
    assert len(found.words("holder")) == 1
    sentences = one["placement"]["sentences"]
    assert found.words("note")[1:] == [f"shop/own/main: {text}" for text in sentences]


def test_a_policy_without_a_ranking_has_the_pool_that_it_chose() -> None:
    parts = make_node("BalloonsPolicy")
    found = explained(parts, "own")

    (line,) = found.words("pool chosen")
    pool = parts.policy.policy.pools(parts.policy.state)
    cpus = next(one.cpus for one in pool if "id-own" in one.containers)
    assert line.endswith(f" (chosen): CPUs {cpus}")
    assert found.cpus_with("chosen") == cpus
    assert found.words("pool") == []


def test_a_removed_container_is_in_the_notes_only() -> None:
    parts = make_node()
    parts.stop("own")
    found = explained(parts, "own")

    assert found.title == "TopologyAwarePolicy: no present container"
    assert found.words("holder") == []
    assert found.cpus_with("chosen") == NO_CPUS
    assert found.words("note")[0].startswith("shop/own/main (removed): decided at ")


def test_refusals_are_in_the_notes() -> None:
    parts = make_node()
    parts.run("huge", 40)
    found = explained(parts, "huge")

    (line,) = found.words("note refused")
    assert line.startswith("recently refused: ")
    assert "shop/huge/main" in line


@pytest.mark.process
async def test_the_commands_draw_what_a_daemon_answers(tmp_path: Path) -> None:
    parts = make_node()
    page, svg, none = tmp_path / "a.html", tmp_path / "b.svg", tmp_path / "x" / "c.svg"
    async with asking(parts, tmp_path):
        socket = ("--control-socket", str(tmp_path / "run" / "control.sock"))

        async def ask(*words: str | Path) -> Any:
            return await asyncio.to_thread(nri_resmgr, *words, *socket)

        status = await ask("status", "--picture", page, "-o", "json")
        explain = await ask("explain", "own", "--picture", svg)
        printed = await ask("status", "--picture", "-")
        of_pod = await ask("explain", "own", "--picture", "-", "-o", "json")
        refused = await ask("status", "--picture", none)
        other = await ask("explain", "own", "--picture", "x.png")

    assert (status.returncode, status.stderr) == (0, "")
    assert json.loads(status.stdout)["kind"] == "State"
    assert (explain.returncode, explain.stderr) == (0, "")
    assert explain.stdout.startswith("shop/own/main\n")
    assert len(seen(page.read_text()).words("holder")) == 2
    assert len(seen(svg.read_text()).words("holder")) == 1
    assert (printed.returncode, printed.stderr) == (0, "")
    assert len(seen(printed.stdout).words("holder")) == 2
    assert of_pod.stdout == svg.read_text()
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        f"nri-resmgr: --picture {none}: no such file or directory\n"
    )
    assert other.returncode == 2
    assert "expected a name that ends in .svg or .html" in other.stderr
