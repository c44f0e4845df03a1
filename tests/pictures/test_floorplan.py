"""The layout has each CPU once, nothing overlaps, and it fits a screen."""

from __future__ import annotations

import pytest
from hypothesis import given

from nri_resmgr.pictures.floorplan import WIDEST, Box, beside, floor_plan
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from tests.examples import examples
from tests.topology.strategies import machines

LARGE = (
    *("2s4n16c2t", "1s1n256c1t", "1s1n128c2t", "8s1n16c2t", "4s2n16c2t"),
    *("2s1d8n16c1t", "1s2d8n8c2t", "16s1n16c1t", "2s4n16c2t l3=4 cxl=4x64Gi"),
)


def fits(box: Box) -> bool:
    return all(
        one.x >= 0
        and one.y >= 0
        and one.x + one.width <= box.width
        and one.y + one.height <= box.height
        and fits(one)
        for one in box.inside
    )


def overlaps(one: Box, two: Box) -> bool:
    apart = (
        one.x + one.width <= two.x,
        two.x + two.width <= one.x,
        one.y + one.height <= two.y,
        two.y + two.height <= one.y,
    )
    return not any(apart)


def is_tidy(box: Box) -> bool:
    inside = box.inside
    pairs = ((one, two) for n, one in enumerate(inside) for two in inside[:n])
    return not any(overlaps(*pair) for pair in pairs) and all(map(is_tidy, inside))


@examples(0.15)
@given(machines())
def test_every_cpu_is_drawn_once_and_nothing_overlaps(machine: Machine) -> None:
    plan = floor_plan(machine)

    assert sorted(plan.cpus) == list(machine.online)
    assert fits(plan)
    assert is_tidy(plan)
    assert beside([plan, plan]).width <= WIDEST


@pytest.mark.parametrize("spec", LARGE)
def test_256_cpus_fit_a_screen(spec: str) -> None:
    machine = parse_spec(spec)
    plan = beside([floor_plan(machine)])

    assert len(machine.online) == 256
    assert plan.width <= WIDEST
    assert plan.height <= 720
    assert is_tidy(plan)


def test_sockets_and_nodes_are_in_rows() -> None:
    (machine,) = beside([floor_plan(parse_spec("2s4n16c2t"))]).inside
    sockets = machine.inside

    assert [one.label for one in sockets] == ["socket 0", "socket 1"]
    assert len({one.y for one in sockets}) == 1
    assert [len({one.y for one in each.inside}) for each in sockets] == [2, 2]


def test_a_thousand_cpus_are_as_wide_and_higher() -> None:
    plan = beside([floor_plan(parse_spec("8s4n16c2t"))])

    assert plan.width <= WIDEST
    assert plan.height > WIDEST
