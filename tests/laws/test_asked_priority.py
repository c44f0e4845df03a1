"""A container gets CPUs of the priority that it asks for, as long as they are free."""

from __future__ import annotations

import hypothesis.strategies as st
import msgspec
from hypothesis import given

from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.policy.events import ContainerSpec, Created
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.policy.topology_aware.policy import TopologyAwarePolicy
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, KiloHertz, MilliCpus, PolicyError, QosClass


def hybrid(text: str) -> tuple[Machine, CpuSet]:
    """Build a machine whose faster CPUs are those with a second thread."""
    machine = parse_spec(text)
    fast = (core.cpus for core in machine.cores if len(core.cpus) > 1)
    return machine, CpuSet.union(fast)


def binned(text: str, fast: CpuSet) -> tuple[Machine, CpuSet]:
    """Build a machine whose faster CPUs have a higher base frequency."""
    machine = parse_spec(text)
    cpus = tuple(
        msgspec.structs.replace(cpu, base=KiloHertz(3_000_000 - (cpu.id not in fast)))
        for cpu in machine.cpus
    )
    return msgspec.structs.replace(machine, cpus=cpus), fast


MACHINES = [
    hybrid("1s1n4c2t8e"),
    hybrid("1s2n2c2t4e"),
    hybrid("2s2n1c2t2e l3=1"),
    binned("2s2n4c1t", CpuSet.parse("0,5-6,9,12-15")),
    binned("1s4n4c1t l3=2", CpuSet.parse("0-2,7,8,13")),
]
QOS = st.sampled_from([QosClass.GUARANTEED, QosClass.GUARANTEED, QosClass.BURSTABLE])


@st.composite
def specs(draw: st.DrawFn, name: int) -> ContainerSpec:
    qos, count = draw(QOS), draw(st.integers(1, 5))
    asked = draw(st.sampled_from([CpuPriority.HIGH, CpuPriority.LOW, None]))
    request = MilliCpus(1000 * count if qos is QosClass.GUARANTEED else 700 * count)
    return ContainerSpec(
        f"c{name}",
        f"pod{name}",
        qos=qos,
        request=request,
        limit=request,
        preferences=Preferences(cpu_priority=asked, shared=False),
    )


@given(st.sampled_from(MACHINES), st.data())
def test_a_container_gets_cpus_of_its_priority_while_they_are_free(
    where: tuple[Machine, CpuSet], data: st.DataObject
) -> None:
    """As long as no container shares CPUs: sharers may need these to stay."""
    machine, fast = where
    reserved = CpuSet.of(data.draw(st.sampled_from(list(machine.online))))
    settings = TopologyAwareSettings(available=machine.online, reserved=reserved)
    policy = TopologyAwarePolicy(machine, settings)
    state, free = policy.start(), machine.online - reserved

    for name in range(data.draw(st.integers(1, 7))):
        spec = data.draw(specs(name))
        try:
            state = policy.decide(state, Created(spec)).state
        except PolicyError:
            continue
        if spec.qos is not QosClass.GUARANTEED:
            break
        cpus, asked = state.grants[spec.id].cpus, spec.preferences.cpu_priority
        wanted = free & fast if asked is CpuPriority.HIGH else free - fast
        free -= cpus
        if asked is not None and len(wanted) >= len(cpus):
            assert cpus <= wanted
