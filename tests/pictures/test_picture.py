"""A picture shows exactly the CPUs of each holder, on any machine, under any name."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.pictures.floorplan import WIDEST
from nri_resmgr.pictures.page import picture_html
from nri_resmgr.pictures.svg import picture_svg
from nri_resmgr.pictures.values import (
    HeldCpus,
    Holder,
    Note,
    Picture,
    Plan,
    PoolList,
    ShownPool,
)
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import NO_CPUS, CpuSet
from nri_resmgr.values.printable import printable
from tests.examples import examples
from tests.pictures.seen import seen
from tests.topology.strategies import machines

MARGINS = 24
HOSTILE = "</text><script>alert(1)</script>]]>&amp;\x1b[2J\u202e\x00\ufffe'\""


def holder(
    title: str, cpus: CpuSet, exclusive: CpuSet = NO_CPUS, *, is_aside: bool = False
) -> Holder:
    return Holder(title, f"on {cpus}", (HeldCpus(cpus, exclusive),), is_aside)


@st.composite
def pictures(draw: st.DrawFn) -> Picture:
    """Draw a machine with holders of hostile names on any of its CPUs."""
    machine = draw(machines())
    some = st.sets(st.sampled_from(list(machine.online))).map(CpuSet.from_iterable)
    names = st.text(max_size=300) | st.just(HOSTILE)
    titles = draw(st.lists(names, max_size=12))
    holders = []
    for number, title in enumerate(titles):
        cpus = draw(some)
        exclusive = cpus & draw(some)
        holders.append(holder(f"{number} {title}", cpus, exclusive))
    plan = Plan(machine, reserved=draw(some), chosen=draw(some))
    return Picture(draw(names), (plan,), tuple(holders))


@examples(0.15)
@given(pictures())
def test_each_holder_has_exactly_its_cpus(picture: Picture) -> None:
    found, (plan,) = seen(picture_svg(picture)), picture.plans

    assert found.cpus.keys() == {f"cpu{one}" for one in plan.machine.online}
    for one in picture.holders:
        (held,) = one.held
        assert found.cpus_in(found.colour_of(printable(one.title))) == held.cpus
    assert found.cpus_with("exclusive") == CpuSet.union(
        one.held[0].exclusive for one in picture.holders
    )
    marks = {cpu: one.marks for cpu, one in found.cpus.items() if one.marks}
    assert marks == {
        f"cpu{cpu}": "r" * (cpu in plan.reserved) + "i" * (cpu in plan.machine.isolated)
        for cpu in plan.reserved | plan.machine.isolated
    }
    assert found.cpus_with("chosen") == plan.chosen


@examples(0.15)
@given(pictures())
def test_each_cpu_names_all_its_holders(picture: Picture) -> None:
    found = seen(picture_svg(picture))

    for cpu in picture.plans[0].machine.online:
        here = [one for one in picture.holders if cpu in one.held[0].cpus]
        names = ", ".join(printable(one.title) for one in here) or "free"
        one = found.cpus[f"cpu{cpu}"]
        assert one.title.startswith(f"CPU {cpu}")
        assert one.title.endswith(f": {names}")
        assert ("free" in one.classes) == (not here)


@examples(0.15)
@given(pictures())
def test_nothing_is_wider_than_the_picture_and_that_fits_a_screen(
    picture: Picture,
) -> None:
    found = seen(picture_svg(picture))

    assert found.rightmost <= found.width <= WIDEST + MARGINS


def test_sixty_sharers_all_have_a_stripe_and_a_name() -> None:
    machine, shared = parse_spec("2s4n16c2t"), CpuSet.parse("1-200")
    sharers = tuple(holder(f"shop/web-{n}/app", shared) for n in range(60))
    found = seen(picture_svg(Picture("x", (Plan(machine),), sharers)))

    cpu = found.cpus["cpu7"]
    assert len(set(cpu.colours)) == 60
    assert {cpu.colours} == {found.cpus[f"cpu{n}"].colours for n in shared}
    (words,) = found.words("sharers")
    names = ", ".join(one.title for one in sharers)
    assert words == f"CPUs 1-200, shared by 60 lines above: {names}"


def test_the_key_explains_what_is_drawn_and_nothing_else() -> None:
    machine = parse_spec("1s1n4c1t")
    isolated = msgspec.structs.replace(machine, isolated=CpuSet.of(3))

    def key(*plans: Plan, holders: tuple[Holder, ...] = ()) -> list[str]:
        words = seen(picture_svg(Picture("x", plans, holders))).words("key")
        return [one.split()[0].strip(":") for one in words]

    own = holder("a", CpuSet.parse("0-1"), CpuSet.of(0))
    assert key(Plan(machine)) == ["free"]
    assert key(Plan(isolated, reserved=CpuSet.of(2)), holders=(own,)) == [
        *("exclusive", "shared", "free", "reserved", "isolated")
    ]
    other = holder("b", CpuSet.of(3), is_aside=True)
    assert key(Plan(machine, chosen=CpuSet.of(0)), holders=(other,)) == [
        *("shared", "free", "outlined", "grey")
    ]


def test_two_plans_have_their_own_cpus_and_one_legend() -> None:
    machine = parse_spec("1s1n4c1t")
    moved = Holder("a", "", (HeldCpus(CpuSet.of(0)), HeldCpus(CpuSet.of(3))))
    plans = (Plan(machine, "before"), Plan(machine, "after"))
    found = seen(picture_svg(Picture("x", plans, (moved,))))

    colour = found.colour_of("a")
    assert found.words("label")[:1] == ["before"]
    assert found.cpus_in(colour, "before-cpu") == CpuSet.of(0)
    assert found.cpus_in(colour, "after-cpu") == CpuSet.of(3)


def test_pools_are_in_order_with_their_cpus_and_the_chosen_one_is_named() -> None:
    machine, own = parse_spec("1s2n2c1t"), holder("a", CpuSet.of(2), CpuSet.of(2))
    pools = (
        ShownPool("node 1", CpuSet.parse("2-3"), "it is nearer", "depth 1", True),
        ShownPool(HOSTILE, CpuSet.parse("0-3")),
    )
    picture = Picture("x", (Plan(machine),), (own,), (PoolList("pools", 0, pools),))
    found = seen(picture_svg(picture))

    assert found.words("pool chosen") == ["1. node 1 (chosen): CPUs 2-3; it is nearer"]
    assert found.words("pool") == [f"2. {printable(HOSTILE)}: CPUs 0-3"]


def test_others_are_grey_and_in_no_line() -> None:
    machine = parse_spec("1s1n4c1t")
    holders = (
        holder("own", CpuSet.parse("0-1")),
        holder("other", CpuSet.parse("1-2"), is_aside=True),
        holder("third", CpuSet.parse("2-3"), is_aside=True),
    )
    found = seen(picture_svg(Picture("x", (Plan(machine),), holders)))

    assert [one.split()[0] for one in found.words("holder")] == ["own"]
    assert found.words("sharers") == ["CPUs 1, shared by 2 containers: own, other"]
    grey = set(found.cpus["cpu3"].colours)
    assert len(grey) == 1
    assert found.cpus["cpu1"].title == "CPU 1: own, other"


def test_notes_are_written_and_refusals_are_marked() -> None:
    notes = (Note("because", HOSTILE), Note(HOSTILE, is_refusal=True))
    picture = Picture("x", (Plan(parse_spec("1s1n1c1t")),), notes=notes)
    found = seen(picture_svg(picture))

    assert found.words("note") == ["because"]
    assert found.words("note refused") == [printable(HOSTILE)]


@pytest.mark.parametrize("draw", [picture_svg, picture_html])
def test_a_file_needs_no_other_and_has_both_schemes(draw: object) -> None:
    assert callable(draw)
    picture = Picture(HOSTILE, (Plan(parse_spec("1s1n2c1t")),))
    text = draw(picture)

    assert seen(text).title == printable(HOSTILE)
    assert text.count("http") == text.count("http://www.w3.org/")
    assert "<script" not in text
    assert "prefers-color-scheme: dark" in text
    assert "user-select: text" in text
