"""Documents and containers for histories of the balloons policy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import hypothesis.strategies as st
import msgspec

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.config import API_VERSION, BadSetting
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.balloons.policy import BalloonsPolicy
from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.policy.whole_pods import PodPlacement
from nri_resmgr.topology import Machine, MemoryKind
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import CpuSet, NodeSet
from tests.laws.topology_aware_draws import PRESENT, specs

NAMESPACES: Final = ("default", "shop", "lab", "kube-system")
LEVELS: Final = ("system", "package", "die", "numa", "l2cache", "core", "thread")

# Options of a type, which has two or three of these.
_TRAITS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"minCPUs": 1},
    {"minCPUs": 2, "maxCPUs": 3},
    {"maxCPUs": 1},
    {"maxCPUs": 4},
    {"maxCPUs": -1},
    {"minBalloons": 1},
    {"minBalloons": 2, "maxBalloons": 2},
    {"maxBalloons": 1},
    {"preferNewBalloons": True},
    {"preferSpreadingPods": True},
    {"preferPerNamespaceBalloon": True},
    {"groupBy": "${name}"},
    {"hideHyperthreads": True},
    {"memoryTypes": ["HBM", "DRAM"]},
    {"pinMemory": False},
    {"allocatorPriority": "low"},
    # Twice, as the widest ones include all CPUs that must not be shared.
    *({"shareIdleCPUsInSame": level} for level in (*LEVELS, *LEVELS[:3])),
)
# Options of types without components only.
_OF_LEAVES: Final[tuple[dict[str, Any], ...]] = (
    {"loads": ["hot"]},
    {"loads": ["vector"]},
    {"allocatorTopologyBalancing": True},
    {"preferSpreadOnPhysicalCores": True},
    {"preferIsolCpus": True},
    {"preferCoreType": "efficient"},
    {"preferCloseToDevices": ["podresourceapi:gpu*"]},
)
_MATCHES: Final[tuple[dict[str, Any], ...]] = (
    {"namespaces": ["shop"]},
    {"namespaces": ["sh*", "lab"]},
    {"matchExpressions": [{"key": "name", "operator": "In", "values": ["log"]}]},
    {},
)
_OPTIONS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"pinCPU": False},
    {"pinMemory": False},
    {"memoryBy": "request"},
    {"onFailure": "shared"},
    {"onFailure": "shared"},
    {"allocatorTopologyBalancing": True},
    {"preferSpreadOnPhysicalCores": True},
    {
        "preserve": {
            "matchExpressions": [
                {"key": "namespace", "operator": "Equals", "values": ["lab"]}
            ]
        }
    },
)
_RESERVED: Final[tuple[dict[str, Any], ...]] = (
    {"reservedResources": {"cpu": "1"}},
    {"reservedResources": {"cpu": "1500m"}},
    {"reservedResources": {"cpu": "1"}, "reservedExact": True},
    {"reservedResources": {"cpu": "cpuset:0"}},
    {"reservedResources": {"cpu": "cpuset:0"}, "reservedExact": True},
    {"reservedResources": {"cpu": "cpuset:0-1"}, "reservedExact": True},
    {"reservedResources": {"cpu": "2"}, "reservedPerSocket": True},
)
_CLASSES: Final[dict[str, Any]] = {
    "loadClasses": [
        {"name": "hot", "level": "core"},
        {"name": "vector", "level": "l2cache", "overloadsLevelInBalloon": True},
    ],
    "schedulingClasses": [
        {"name": "calm", "policy": "batch", "nice": 5},
        {"name": "eager", "nice": -5},
    ],
}


def _joined(traits: list[dict[str, Any]]) -> dict[str, Any]:
    joined: dict[str, Any] = {}
    for one in traits:
        if not joined.keys() & one.keys():
            joined |= one
    return joined


@st.composite
def leaf_types(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """Draw a type without components."""
    traits = draw(st.lists(st.sampled_from(_TRAITS + _OF_LEAVES), max_size=3))
    matches: dict[str, Any] = {} if name == "reserved" else draw(_MATCHING)
    calm: dict[str, Any] = draw(st.sampled_from([{}, {"schedulingClass": "calm"}]))
    return _joined([{"name": name}, matches, calm, *traits])


_NAMES: Final[st.SearchStrategy[tuple[str, ...]]] = st.sampled_from(
    [(), ("a",), ("a",), ("a", "b"), ("b", "a")]
)
_AGAIN: Final[st.SearchStrategy[tuple[str, ...]]] = st.sampled_from(
    [(), (), (), ("default",), ("reserved",)]
)
_MATCHING: Final = st.sampled_from(_MATCHES)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the ``spec`` of a document, which may not fit a machine."""
    names = draw(_NAMES)
    again = draw(_AGAIN)
    types = [draw(leaf_types(name)) for name in (*names, *again)]
    if draw(st.booleans()) and names:
        types.append(draw(_composite_types(names)))
    if draw(st.integers(0, 4)) == 0:
        cpus = draw(st.sampled_from(["1", "1-2", "3"]))
        types.append({"name": "given", "cpus": cpus} | draw(_MATCHING))
    options = draw(st.lists(st.sampled_from(_OPTIONS), max_size=2))
    spec = _joined([draw(st.sampled_from(_RESERVED)), *options])
    mode = draw(st.sampled_from(PodPlacement))
    return spec | _CLASSES | {"placePods": mode.value, "balloonTypes": types}


@st.composite
def _composite_types(draw: st.DrawFn, names: tuple[str, ...]) -> dict[str, Any]:
    parts = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
    row: dict[str, Any] = {
        "name": "whole",
        "components": [{"balloonType": one} for one in parts],
    }
    if draw(st.booleans()):
        row["componentCreation"] = "balance-balloons"
    traits = draw(st.lists(st.sampled_from(_TRAITS), max_size=2))
    return _joined([row, draw(_MATCHING), *traits])


def policy_for(spec: Mapping[str, Any], machine: Machine) -> BalloonsPolicy | None:
    """Build the policy of a document; None where that does not fit the machine."""
    try:
        policy = build_policy(parse_config(document_of(spec)), machine)
    except BadSetting:
        return None
    assert isinstance(policy, BalloonsPolicy)
    return policy


def document_of(spec: Mapping[str, Any]) -> str:
    """Write a document; YAML reads JSON."""
    return json.dumps(
        {"apiVersion": API_VERSION, "kind": "BalloonsPolicy", "spec": spec}
    )


_ASKED: Final[st.SearchStrategy[dict[str, Any]]] = st.sampled_from(
    [
        {},
        {},
        {},
        *({"balloon": name} for name in ("a", "b", "whole", "given", "reserved")),
        {"balloon": "nowhere"},
        {"hide_hyperthreads": True},
        {"hide_hyperthreads": False},
        {"scheduling_class": "eager"},
        {"scheduling_class": "unheard-of"},
        {"preserve_cpus": True},
        {"preserve_memory": True},
        {"memory_kinds": frozenset({MemoryKind.DRAM})},
    ]
)
_DEVICES: Final = st.sampled_from(
    [
        (),
        (),
        (Hint("podresapi:gpu0", nodes=NodeSet.of(0)),),
        (Hint("podresapi:gpu1", cpus=CpuSet.parse("2-3")),),
    ]
)


@st.composite
def containers(draw: st.DrawFn) -> ContainerSpec:
    """Draw a container for a node with balloons."""
    spec = draw(specs())
    return msgspec.structs.replace(
        spec,
        namespace=draw(st.sampled_from(NAMESPACES)),
        preferences=Preferences(**draw(_ASKED)),
        hints=draw(_DEVICES),
    )


OTHERS: Final[st.SearchStrategy[list[tuple[ContainerSpec, Pin]]]] = st.lists(
    st.tuples(containers(), PRESENT), max_size=4
)

CLASSES: Final[st.SearchStrategy[dict[str, str]]] = st.fixed_dictionaries(
    {},
    optional={
        "schedulingClass": st.sampled_from(["calm", "eager"]),
        "cpuClass": st.sampled_from(["fast", "slow"]),
    },
)


def with_classes(spec: Mapping[str, Any], classes: Mapping[str, str]) -> dict[str, Any]:
    """Write the same document with other classes, or none, for all its types."""
    bare: list[dict[str, Any]] = [
        {k: v for k, v in row.items() if k not in ("schedulingClass", "cpuClass")}
        for row in spec["balloonTypes"]
    ]
    # CPUs of a composite balloon have the classes of its components.
    scheduling = {k: v for k, v in classes.items() if k != "cpuClass"}
    types = [
        {**row, **(scheduling if "components" in row else classes)} for row in bare
    ]
    return {**spec, "balloonTypes": types}
