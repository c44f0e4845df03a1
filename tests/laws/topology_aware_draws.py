"""Machines, settings and containers for histories of the topology-aware policy."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

import hypothesis.strategies as st
import msgspec

from nri_resmgr.policy.affinity import Affinity, Expression, Operator
from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin
from nri_resmgr.policy.preferences import Preferences, TreeLevel
from nri_resmgr.policy.topology_aware.settings import (
    TopologyAwareSettings,
)
from nri_resmgr.policy.whole_pods import PodPlacement
from nri_resmgr.topology import HugePages, Machine, MemoryKind
from nri_resmgr.topology.hints import Hint, complete_hints
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, CpuSet, MilliCpus, NodeSet, QosClass
from tests.topology.odd_machines import odd_series

GIB: Final = 1 << 30
IDS: Final = st.sampled_from("abcdefgh")
PODS: Final = st.sampled_from(["p", "q"])
NAMES: Final = ("web", "log")

machine_of = functools.lru_cache(256)(parse_spec)

# A machine at the start, and after hotplug of its parts.
MACHINES: Final = odd_series() | st.sampled_from(
    [
        ("1s1n1c1t", "1s1n2c1t"),
        (
            "2s2n2c2t memory=4Gi",
            "2s2n2c2t memory=4Gi offline=1-2",
            "2s2n2c2t memory=2Gi,4Gi",
        ),
        ("1s2n4c1t l3=2 memory=4Gi", "1s2n4c1t l3=2 memory=4Gi offline=7"),
        ("1s1n2c2t4e numbering=adjacent memory=4Gi", "1s1n2c2t numbering=adjacent"),
        (
            "2s1n4c2t isolated=2-3,10-11 memory=4Gi",
            "2s1n4c2t isolated=2-3 offline=10-11",
        ),
        (
            "1s2n3c1t memory=4Gi hbm=2x2Gi:movable cxl=1x4Gi:movable",
            "1s2n3c1t memory=4Gi hbm=2x2Gi:movable",
        ),
        ("2s1n3c1t memory=4Gi pmem=2x8Gi", "2s1n3c1t memory=4Gi"),
        ("4s2c1t around=2 memory=4Gi", "4s2c1t around=2 memory=4Gi offline=7"),
        ("8s1c1t around=4 memory=4Gi", "8s1c1t around=4 memory=4Gi offline=2-3"),
        ("1s2n2c1t emulated=2 memory=8Gi", "1s2n2c1t emulated=2 memory=4Gi,8Gi"),
        ("1s2n2c2t memory=6Gi,0 hugepages=2Mi:256", "1s2n2c2t memory=6Gi,2Gi"),
        ("2s1n2c2t memory=4Gi cxl=1x4Gi:movable ids=0,2,5", "2s1n2c2t ids=0,2"),
    ]
)

OPTIONS: Final = st.fixed_dictionaries(
    {
        "pin_cpus": st.sampled_from([True, True, True, False]),
        "pin_memory": st.sampled_from([True, True, True, False]),
        "prefer_isolated": st.booleans(),
        "prefer_shared": st.sampled_from([False, False, True]),
        "colocate_pods": st.booleans(),
        "colocate_namespaces": st.booleans(),
        "unlimited_burstable": st.sampled_from(TreeLevel),
        "on_failure": st.sampled_from(OnFailure),
        "place_pods": st.sampled_from(PodPlacement),
    }
)


def settings_for(
    machine: Machine, reserved: int, withheld: int, options: Mapping[str, Any]
) -> TopologyAwareSettings:
    """Reserve the lowest CPUs and withhold the highest, but leave one at least."""
    available = machine.online
    if len(available) > withheld + 1:
        available = available.lowest(len(available) - withheld)
    ordinary = available - machine.isolated or available
    return TopologyAwareSettings(
        available=available, reserved=ordinary.lowest(reserved), **options
    )


ANYBODY: Final = Expression("name", Operator.EXISTS)
LOGS: Final = Expression("name", Operator.EQUALS, ("log",))

# None of these is asked for by most containers; two at once by some.
_WISHES: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"reserved": True},
    {"reserved": False},
    {"shared": True},
    {"shared": False},
    {"isolated": True},
    {"isolated": False},
    {"require_isolated": True},
    {"hide_hyperthreads": True},
    {"pick_by_hints": True},
    {"strict_hints": True},
    {"cpu_priority": CpuPriority.HIGH},
    {"memory_kinds": frozenset({MemoryKind.HBM})},
    {"memory_kinds": frozenset({MemoryKind.DRAM})},
    {"memory_kinds": frozenset({MemoryKind.CXL, MemoryKind.PMEM})},
    {"cold_start": 30},
    {"unlimited_burstable": TreeLevel.NUMA},
    {"preserve_cpus": True},
    {"preserve_memory": True},
    {"affinities": (Affinity(LOGS, ANYBODY, 10),)},
    {"affinities": (Affinity(ANYBODY, weight=-5),)},
)
_ASKED: Final = st.sampled_from([(), (), *((one,) for one in _WISHES)]) | st.lists(
    st.sampled_from(_WISHES), max_size=3
)

_HINTS: Final = st.sampled_from(
    [
        (),
        (),
        (Hint("nic", nodes=NodeSet.of(0)),),
        (Hint("podresapi:gpu", nodes=NodeSet.of(2)),),
        (Hint("disk", cpus=CpuSet.parse("0-3")),),
        (
            Hint("podresapi:a", nodes=NodeSet.of(0)),
            Hint("podresapi:b", nodes=NodeSet.of(1)),
        ),
        (Hint("far", packages=frozenset({1})), Hint("near", cpus=CpuSet.of(1))),
    ]
)

# Thousandths asked for, and the limit.
_CPU_OF: Final[Mapping[QosClass, list[tuple[int, int | None]]]] = {
    QosClass.GUARANTEED: [
        (milli, milli) for milli in (1000, 2000, 1500, 3000, 500, 2500, 1200, 5000)
    ],
    QosClass.BURSTABLE: [
        (500, None),
        (1000, 3000),
        (1500, None),
        (300, 1000),
        (0, 500),
        (2500, None),
    ],
    QosClass.BEST_EFFORT: [(0, None)],
}
_MEMORY: Final = ((0, 0), (0, 2), (1, 1), (1, 0), (3, 3), (1, 4), (5, 5))
_PAGES: Final = (HugePages(Bytes(2 << 20), 100),)


@st.composite
def amounts(draw: st.DrawFn, qos: QosClass) -> dict[str, Any]:
    """Draw the requests of a container of a QoS class."""
    request, limit = draw(st.sampled_from(_CPU_OF[qos]))
    memory, most = draw(st.sampled_from(_MEMORY))
    if qos is QosClass.BEST_EFFORT:
        memory = most = 0
    return {
        "request": MilliCpus(request),
        "limit": None if limit is None else MilliCpus(limit),
        "memory_request": Bytes(memory * GIB),
        "memory_limit": Bytes(most * GIB) if most else None,
    }


AMOUNTS: Final = st.fixed_dictionaries({qos: amounts(qos) for qos in QosClass})


@st.composite
def specs(draw: st.DrawFn) -> ContainerSpec:
    """Draw a container, not placed yet, with hints that fit no particular machine."""
    qos = draw(st.sampled_from([QosClass.GUARANTEED, *QosClass]))
    name, hugepages = (
        draw(st.sampled_from(NAMES)),
        draw(st.sampled_from([()] * 5 + [_PAGES])),
    )
    wishes: dict[str, Any] = {}
    for wish in draw(_ASKED):
        wishes |= wish
    return ContainerSpec(
        id=draw(IDS),
        pod=draw(PODS),
        title=f"default/{name}",
        slot=draw(st.sampled_from(["", name])),
        name=name,
        namespace=draw(st.sampled_from(["default", "default", "kube-system"])),
        qos=qos,
        created=draw(st.integers(0, 3)),
        hugepages=hugepages,
        preferences=Preferences(**wishes),
        hints=draw(_HINTS),
        **draw(amounts(qos)),
    )


PRESENT: Final = st.builds(
    Pin,
    st.integers(0, 255).map(CpuSet),
    st.sampled_from([NodeSet(), NodeSet.of(0), NodeSet.parse("0-1"), NodeSet.of(9)]),
) | st.just(NO_PIN)


STRANGERS: Final = st.lists(st.tuples(specs(), PRESENT), max_size=4)
SETTINGS: Final = st.fixed_dictionaries(
    {
        "reserved": st.integers(1, 2),
        "withheld": st.integers(0, 1),
        "options": OPTIONS,
    }
)


def on(machine: Machine, spec: ContainerSpec, present: Pin = NO_PIN) -> ContainerSpec:
    """Return a container as the app would read it on a machine."""
    hints = complete_hints(spec.hints, machine)
    return msgspec.structs.replace(spec, hints=hints, present=present)
