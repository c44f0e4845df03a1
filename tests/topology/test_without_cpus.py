"""Machines without some of their CPUs are as if these were offline."""

from __future__ import annotations

import pytest

from nri_resmgr.topology import ContradictoryMachine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.topology.without_cpus import without_cpus
from nri_resmgr.values import CpuSet


@pytest.mark.parametrize("gone", ["3", "0", "2-3", "4-7", "0,4,8,12", "1-15"])
@pytest.mark.parametrize("spec", ["2s1n4c2t", "1s2n4c2t", "2s2n2c2t"])
def test_removed_cpus_are_as_if_offline(spec: str, gone: str) -> None:
    machine = parse_spec(spec)

    left = without_cpus(machine, CpuSet.parse(gone))

    assert left == parse_spec(f"{spec} offline={gone}")
    assert left.online == machine.online - CpuSet.parse(gone)
    assert left.present == machine.present


def test_cpus_that_are_not_there_change_nothing() -> None:
    machine = parse_spec("1s1n4c1t")

    assert without_cpus(machine, CpuSet.parse("4-9")) is machine


def test_a_machine_has_a_cpu() -> None:
    with pytest.raises(ContradictoryMachine):
        without_cpus(parse_spec("1s1n4c1t"), CpuSet.parse("0-3"))
