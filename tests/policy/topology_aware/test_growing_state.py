"""Containers that are added in place give the state of the same steps one by one."""

from __future__ import annotations

from typing import Final

import hypothesis.strategies as st
from hypothesis import given
from msgspec.structs import replace

from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.mems import MemoryRequest, allocate_memory
from nri_resmgr.policy.topology_aware.demand import CpuKind
from nri_resmgr.policy.topology_aware.growing_state import GrowingState
from nri_resmgr.policy.topology_aware.pool_ledger import Grant
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, CpuSet, MilliCpus, NodeSet

MACHINE: Final = parse_spec("2s2c2t memory=4Gi")
TREE: Final = PoolTree.of(MACHINE, MACHINE.online, CpuSet.of(0))
SETTINGS: Final = TopologyAwareSettings(available=MACHINE.online, reserved=CpuSet.of(0))

# Kind, pool, thousandths, pod, and whether an earlier container is moved first.
STEPS: Final = st.lists(
    st.tuples(
        st.sampled_from([CpuKind.SHARED, CpuKind.RESERVED, CpuKind.PRESERVED]),
        st.integers(0, len(TREE.pools) - 1),
        st.sampled_from([0, 100, 500]),
        st.sampled_from("pq"),
        st.booleans(),
    ),
    max_size=8,
)


@given(STEPS, st.integers(0, 8))
def test_the_result_is_that_of_one_state_after_the_other(
    steps: list[tuple[CpuKind, int, int, str, bool]], before: int
) -> None:
    # The states of decisions, which copy all tables, are the oracle.
    expected = TopologyAwareState.empty(TREE)
    growing = GrowingState.of(expected)
    start, text = expected, repr(expected)
    for number, (kind, pool, fraction, pod, moves) in enumerate(steps):
        if number == before:
            growing, start = GrowingState.of(expected), expected
            text = repr(start)
        key = f"c{number}"
        asked = MemoryRequest(id=key, affinity=NodeSet.of(0), size=Bytes(1 << 20))
        memory = allocate_memory(asked, expected.memory).ledger
        sent = Pin(cpus=CpuSet.of(number % 4))
        spec = ContainerSpec(key, pod=pod, present=sent)
        grant = Grant(key, kind, pool, fraction=MilliCpus(fraction))
        changed: tuple[Grant, ...] = ()
        if moves and number:
            changed = (replace(expected.grants["c0"], pool=pool, fell_back=True),)

        expected = expected.regrant(*changed).put(spec, grant, memory, sent)
        growing.regrant(*changed)
        growing.put(spec, grant, memory)

        assert growing.view(SETTINGS) == expected.view(SETTINGS)
    found = growing.finished()
    assert found == expected
    assert list(found.ledger.entries) == list(expected.ledger.entries)
    assert list(found.grants) == list(expected.grants)
    assert repr(start) == text
