"""Which CPUs are better, by what Speed Select does in their punits."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given

from nri_resmgr.policy.cpus import PrioritySets, machine_priorities
from nri_resmgr.topology import CoreKind, Machine
from nri_resmgr.topology.speed_select import Clos, ClosOrder, Feature, Punit
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, KiloHertz
from tests.examples import examples
from tests.topology.speed_select import punits_of

cpus = CpuSet.parse
OFF, ON = Feature.OFF, Feature.ON

# CPUs 0-1, 2, 3-5, 6-7 of a punit, the heavier ones (served last) in front.
CLOS = (
    Clos(weight=9, cpus=cpus("0-1")),
    Clos(weight=0, cpus=cpus("2")),
    Clos(weight=4, cpus=cpus("3-5")),
    Clos(weight=9, cpus=cpus("6-7")),
)
CAPABLE = Punit(
    package=0,
    id=0,
    cpus=cpus("0-7"),
    base=OFF,
    base_cpus=cpus("4-5"),
    turbo=OFF,
    power=OFF,
    clos=CLOS,
)
ORDERED = ClosOrder.ORDERED


@pytest.mark.parametrize(
    ("facts", "high", "low"),
    [
        pytest.param({}, "", "", id="nothing is on"),
        pytest.param({"base": ON}, "4-5", "", id="faster cores are high"),
        pytest.param(
            {"power": ON, "order": ORDERED}, "0-1", "6-7", id="first and last class"
        ),
        pytest.param(
            {"power": ON}, "2", "0-1,6-7", id="least and most weight, shared or not"
        ),
        pytest.param(
            {"power": ON, "order": ORDERED, "clos": (Clos(), *CLOS[1:3], Clos())},
            "2",
            "3-5",
            id="classes without CPUs do not count",
        ),
        pytest.param(
            {"power": ON, "order": ORDERED, "clos": (Clos(), CLOS[0])},
            "",
            "",
            id="one class alone is neither better nor worse",
        ),
        pytest.param(
            {"power": ON, "clos": (CLOS[0], CLOS[3])},
            "",
            "",
            id="classes of one weight are alike",
        ),
        pytest.param({"turbo": ON}, "0-2", "3-7", id="turbo favours classes 0 and 1"),
        pytest.param(
            {"turbo": ON, "power": ON, "base": ON, "order": ORDERED},
            "0-2",
            "3-7",
            id="turbo goes before core power and base frequency",
        ),
        pytest.param(
            {"power": ON, "base": ON, "order": ORDERED},
            "0-1",
            "6-7",
            id="core power goes before base frequency",
        ),
        pytest.param(
            {"turbo": ON, "base": ON, "clos": ()},
            "4-5",
            "",
            id="turbo without classes says nothing",
        ),
    ],
)
def test_the_first_feature_that_is_on_decides(
    facts: dict[str, Any], high: str, low: str
) -> None:
    punit = msgspec.structs.replace(CAPABLE, **facts)
    machine = msgspec.structs.replace(parse_spec("8c"), speed_select=(punit,))

    assert machine_priorities(machine) == PrioritySets(cpus(high), cpus(low))


def with_base(machine: Machine) -> Machine:
    """Give every even CPU a lower base frequency."""
    cpus_known = (
        msgspec.structs.replace(cpu, base=KiloHertz(2_000_000 + cpu.id % 2))
        for cpu in machine.cpus
    )
    return msgspec.structs.replace(machine, cpus=tuple(cpus_known))


def test_packages_without_an_active_feature_go_by_frequency() -> None:
    punit = Punit(1, 0, cpus("2-3"), base=ON, base_cpus=cpus("2"))
    machine = msgspec.structs.replace(
        with_base(parse_spec("2s2c")), speed_select=(punit,)
    )

    assert machine_priorities(machine) == PrioritySets(cpus("1-2"), cpus("0"))


def test_where_one_punit_is_active_the_others_of_its_package_are_normal() -> None:
    punits = (
        Punit(0, 0, cpus("0-1"), base=ON, base_cpus=cpus("0")),
        Punit(0, 1, cpus("2-3"), base=OFF, base_cpus=cpus("2")),
    )
    machine = msgspec.structs.replace(with_base(parse_spec("4c")), speed_select=punits)

    assert machine_priorities(machine) == PrioritySets(cpus("0"), cpus(""))


def test_efficient_cores_are_low_whatever_their_class() -> None:
    clos = (Clos(cpus=cpus("1-2")), Clos(), Clos(cpus=cpus("0,3")))
    punit = Punit(0, 0, cpus("0-3"), turbo=ON, power=ON, clos=clos)
    machine = msgspec.structs.replace(parse_spec("2c2e"), speed_select=(punit,))

    assert machine_priorities(machine) == PrioritySets(cpus("1"), cpus("0,2-3"))


def verdict(machine: Machine, cpu: int) -> str:
    """Rank one CPU by the table of the reference, read line by line."""
    if machine.core_of(cpu).kind is not CoreKind.PERFORMANCE:
        return "low"
    (punit,) = (p for p in machine.speed_select if cpu in p.cpus)
    mine = next((n for n, c in enumerate(punit.clos) if cpu in c.cpus), None)
    if punit.turbo is ON and punit.clos:
        return "high" if mine in (0, 1) else "low"
    if punit.power is ON:
        by_number = punit.order is ORDERED
        ranks = {n: n if by_number else c.weight for n, c in enumerate(punit.clos)}
        active = {ranks[n] for n, c in enumerate(punit.clos) if c.cpus}
        if mine is None or len(active) < 2:
            return "normal"
        place = {min(active): "high", max(active): "low"}
        return place.get(ranks[mine], "normal")
    return "high" if punit.base is ON and cpu in punit.base_cpus else "normal"


@given(punits_of(parse_spec("2s4c2t2e")))
@examples(1.2)
def test_every_cpu_has_the_priority_of_the_table(machine: Machine) -> None:
    found = machine_priorities(machine)

    assert not found.high & found.low
    assert found.high | found.low <= machine.online
    for package in machine.packages:
        punits = [p for p in machine.speed_select if p.package == package.id]
        if any(ON in (p.turbo, p.power, p.base) for p in punits):
            ranks = {cpu: verdict(machine, cpu) for cpu in package.cpus}
            assert found.high & package.cpus == CpuSet.from_iterable(
                cpu for cpu, rank in ranks.items() if rank == "high"
            )
            assert found.low & package.cpus == CpuSet.from_iterable(
                cpu for cpu, rank in ranks.items() if rank == "low"
            )
