"""Which CPUs are better, by what their frequency driver says."""

from __future__ import annotations

import attrs
import msgspec
import pytest

from nri_resmgr.policy.cpus import PrioritySets, machine_priorities
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, KiloHertz

cpus = CpuSet.parse


@attrs.frozen
class Facts:
    """What some CPUs say, field by field and CPU by CPU."""

    base: dict[int, KiloHertz] = attrs.field(factory=dict)
    max: dict[int, KiloHertz] = attrs.field(factory=dict)
    epp: dict[int, str] = attrs.field(factory=dict)


def machine_with(spec: str, facts: Facts) -> Machine:
    machine = parse_spec(spec)
    cpus_known = (
        msgspec.structs.replace(
            cpu,
            base=facts.base.get(cpu.id, cpu.base),
            max=facts.max.get(cpu.id, cpu.max),
            epp=facts.epp.get(cpu.id, cpu.epp),
        )
        for cpu in machine.cpus
    )
    return msgspec.structs.replace(machine, cpus=tuple(cpus_known))


def ghz(*values: float) -> dict[int, KiloHertz]:
    return {cpu: KiloHertz(round(value * 1e6)) for cpu, value in enumerate(values)}


@pytest.mark.parametrize(
    ("spec", "facts", "high", "low"),
    [
        pytest.param("4c", Facts(), "", "", id="nothing is known"),
        pytest.param("4c", Facts(base=ghz(2, 2, 2, 2)), "", "", id="all are alike"),
        pytest.param(
            "4c", Facts(base=ghz(2, 3, 2, 2.5)), "1,3", "0,2", id="base frequencies"
        ),
        pytest.param(
            "2s2c", Facts(base=ghz(2, 3, 3, 3)), "1", "0", id="each package on its own"
        ),
        pytest.param(
            "4c", Facts(max=ghz(5, 5.2, 5, 5.2)), "1,3", "", id="favoured cores"
        ),
        pytest.param(
            "4c",
            Facts(max=ghz(5, 5.2, 5, 5), base=ghz(2, 2, 2, 3)),
            "3",
            "0-2",
            id="base before maximum",
        ),
        pytest.param(
            "4c",
            Facts(epp={0: "power", 1: "performance", 2: "balance_power", 3: "power"}),
            "1-2",
            "0,3",
            id="energy preference in words",
        ),
        pytest.param(
            "2c",
            Facts(epp={0: "200", 1: "20"}),
            "1",
            "0",
            id="energy preference in numbers",
        ),
        pytest.param(
            "2c",
            Facts(epp={0: "power", 1: "performance"}, base=ghz(3, 2)),
            "1",
            "0",
            id="energy preference before frequency",
        ),
        pytest.param(
            "2c",
            Facts(epp={0: "whatever", 1: "power"}),
            "",
            "",
            id="an unknown word",
        ),
        pytest.param("1c2t4e", Facts(), "", "2-5", id="efficient cores are low"),
        pytest.param(
            "2c1t4e",
            Facts(base=ghz(2, 3, 1, 1, 1, 1)),
            "1",
            "0,2-5",
            id="strong cores are compared with each other only",
        ),
        pytest.param(
            "3c",
            Facts(base={1: KiloHertz(1), 2: KiloHertz(2)}),
            "2",
            "1",
            id="a CPU without values is normal",
        ),
    ],
)
def test_finds_better_and_worse_cpus(
    spec: str, facts: Facts, high: str, low: str
) -> None:
    found = machine_priorities(machine_with(spec, facts))

    assert found == PrioritySets(cpus(high), cpus(low))
