"""Speed Select facts as part of a machine: what fits, and how it is shown."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given

from nri_resmgr.topology import ContradictoryMachine, Machine
from nri_resmgr.topology.document import from_document, to_document
from nri_resmgr.topology.speed_select import Clos, ClosOrder, Feature, Punit
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.topology.text import format_tree
from nri_resmgr.values import CpuSet
from tests.examples import examples
from tests.topology.speed_select import punits_of

cpus = CpuSet.parse


@given(punits_of(parse_spec("2s2c2t")))
@examples(0.3)
def test_a_document_holds_every_fact(machine: Machine) -> None:
    assert from_document(json.loads(json.dumps(to_document(machine)))) == machine


def test_a_document_omits_unset_fields_of_a_punit() -> None:
    machine = msgspec.structs.replace(
        parse_spec("2c"), speed_select=(Punit(0, 1, cpus("0-1")),)
    )

    assert to_document(machine)["speed_select"] == (
        {"package": 0, "id": 1, "cpus": "0-1"},
    )


def test_a_tree_shows_the_features_of_each_punit() -> None:
    busy = Punit(
        *(0, 0, cpus("0-1")),
        level=2,
        is_locked=True,
        base=Feature.OFF,
        base_cpus=cpus("1"),
        turbo=Feature.ON,
        power=Feature.ON,
        order=ClosOrder.ORDERED,
        clos=(Clos(cpus=cpus("1")), Clos(), Clos(), Clos(cpus=cpus("0"))),
    )
    machine = msgspec.structs.replace(
        parse_spec("2s2c memory=0"), speed_select=(busy, Punit(1, 0, cpus("2-3")))
    )

    assert [line for line in format_tree(machine).splitlines() if "punit" in line] == [
        (
            "    punit 0: CPUs 0-1, profile 2, locked, base frequency off (1), "
            "turbo frequency on, core power on ordered (0: 1; 3: 0)"
        ),
        "    punit 0: CPUs 2-3, profile 0",
    ]


ONE = Punit(0, 0, cpus("0-1"))


@pytest.mark.parametrize(
    ("punits", "what"),
    [
        pytest.param((ONE, ONE), "punits repeat or are out of order", id="twice"),
        pytest.param(
            (
                msgspec.structs.replace(ONE, id=1),
                msgspec.structs.replace(ONE, cpus=cpus("2")),
            ),
            "punits repeat or are out of order",
            id="out of order",
        ),
        pytest.param(
            (ONE, msgspec.structs.replace(ONE, id=1, cpus=cpus("1-2"))),
            "CPU 1 is in two punits",
            id="a CPU in two punits",
        ),
        pytest.param(
            (msgspec.structs.replace(ONE, cpus=cpus("0-4")),),
            "CPU 4 is in punits and cannot be",
            id="a CPU that is not online",
        ),
        pytest.param(
            (
                msgspec.structs.replace(
                    ONE, clos=(Clos(cpus=cpus("0")), Clos(cpus=cpus("0-1")))
                ),
            ),
            "CPU 0 is in two classes of punit 0/0",
            id="a CPU in two classes",
        ),
        pytest.param(
            (msgspec.structs.replace(ONE, clos=(Clos(cpus=cpus("2")),)),),
            "CPU 2 is in classes of punit 0/0 and cannot be",
            id="a class with a CPU from elsewhere",
        ),
        pytest.param(
            (msgspec.structs.replace(ONE, base_cpus=cpus("3")),),
            "CPU 3 is in faster cores of punit 0/0 and cannot be",
            id="a faster core from elsewhere",
        ),
    ],
)
def test_facts_that_do_not_fit_are_refused(
    punits: tuple[Punit, ...], what: str
) -> None:
    with pytest.raises(ContradictoryMachine, match=what):
        msgspec.structs.replace(parse_spec("4c"), speed_select=punits)
