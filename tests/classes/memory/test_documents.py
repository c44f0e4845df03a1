"""The files of memory-qos and memory-policy, and what is wrong with some."""

from __future__ import annotations

import pytest
import yaml

from nri_resmgr.classes.memory import (
    MemoryQosClass,
    MemoryQosConfig,
    NumaPolicy,
    PolicyFlag,
    PolicyMode,
)
from nri_resmgr.config import BadSetting
from nri_resmgr.config.memory_classes import (
    NumaPolicyConfig,
    parse_numa_policy,
    read_memory_qos,
    read_numa_policies,
)
from nri_resmgr.config.table import Table

QOS = """
classes:
- name: bronze
  swaplimitratio: 0.5
- {name: silver, swapLimitRatio: 0.0157} # a millionth: 15699.999...
- {name: gold, SwapLimitRatio: 0}
- {name: iron, swaplimitratio: 1}
- name: plain
unifiedannotations:
- memory.swap.max
- memory.high
"""
POLICIES = """
injectMpolset: true
classes:
- name: interleave-all
  policy:
    mode: MPOL_INTERLEAVE
    nodes: all
- name: near
  policy: {mode: MPOL_BIND, nodes: cpu-nodes, flags: [MPOL_F_STATIC_NODES]}
- name: first
  policy: {mode: MPOL_PREFERRED, nodes: 0}
- name: local
  policy: {mode: MPOL_LOCAL, nodes: ""}
"""


def read_qos(document: object) -> MemoryQosConfig:
    return read_memory_qos(Table("$", {"memoryQos": document}), "memoryQos")


def read_policies(document: object) -> NumaPolicyConfig:
    return read_numa_policies(Table("$", {"memoryPolicy": document}), "memoryPolicy")


def test_the_file_of_memory_qos_is_read() -> None:
    assert read_qos(yaml.safe_load(QOS)) == MemoryQosConfig(
        {
            "bronze": MemoryQosClass(500_000),
            "silver": MemoryQosClass(15_700),
            "gold": MemoryQosClass(0),
            "iron": MemoryQosClass(1_000_000),
            "plain": MemoryQosClass(),
        },
        ("memory.swap.max", "memory.high"),
    )
    assert read_qos(None) == MemoryQosConfig({})


def test_the_file_of_memory_policy_is_read() -> None:
    static = (PolicyFlag.STATIC_NODES,)
    assert read_policies(yaml.safe_load(POLICIES)) == NumaPolicyConfig(
        {
            "interleave-all": NumaPolicy(PolicyMode.INTERLEAVE, "all"),
            "near": NumaPolicy(PolicyMode.BIND, "cpu-nodes", static),
            "first": NumaPolicy(PolicyMode.PREFERRED, "0"),
            "local": NumaPolicy(PolicyMode.LOCAL),
        },
        injects=True,
    )
    assert read_policies({"injectmpolset": False}) == NumaPolicyConfig({})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param(
            "classes: [{name: a, swaplimitratio: 1.01}]",
            "$.classes[0].swapLimitRatio: expected 0 to 1, not 1.01",
            id="more than all",
        ),
        pytest.param(
            "classes: [{name: a, swaplimitratio: -0.1}]",
            "$.classes[0].swapLimitRatio: expected 0 to 1, not -0.1",
            id="less than nothing",
        ),
        pytest.param(
            "classes: [{name: a, swaplimitratio: true}]",
            "$.classes[0].swapLimitRatio: expected 0 to 1, not True",
            id="a truth value",
        ),
        pytest.param(
            "classes: [{name: a, swaplimitratio: half}]",
            "$.classes[0].swapLimitRatio: expected 0 to 1, not 'half'",
            id="a word",
        ),
        pytest.param(
            "classes: [{name: a, swaplimitratio: .nan}]",
            "$.classes[0].swapLimitRatio: expected 0 to 1, not nan",
            id="not a number",
        ),
        pytest.param(
            "classes: [{swaplimitratio: 1}]",
            "$.classes[0].name: missing, expected text",
            id="no name",
        ),
        pytest.param(
            "classes: [{name: a}, {name: a}]",
            "$.classes[1].name: duplicate name 'a'",
            id="a name twice",
        ),
        pytest.param(
            "classes: {a: 1}",
            "$.classes: expected a list, not a mapping",
            id="classes as a mapping",
        ),
        pytest.param(
            "classes: [a]",
            "$.classes[0]: expected a mapping, not 'a'",
            id="a class as a name",
        ),
        pytest.param(
            "unifiedannotations: [../memory.high]",
            "$.unifiedAnnotations[0]: expected a file of cgroup v2 such as "
            "memory.high, not '../memory.high'",
            id="a file elsewhere",
        ),
        pytest.param(
            "unifiedannotation: []",
            "$.unifiedannotation: unknown key, did you mean unifiedAnnotations?",
            id="an unknown key",
        ),
    ],
)
def test_a_mistake_in_memory_qos_is_reported(text: str, complaint: str) -> None:
    with pytest.raises(BadSetting) as error:
        read_qos(yaml.safe_load(text))

    assert str(error.value) == complaint.replace("$", "$.memoryQos", 1)


NODES = "expected all, allowed-mems, cpu-packages, cpu-nodes, max-dist:N or a list as 0"


@pytest.mark.parametrize(
    ("policy", "complaint"),
    [
        pytest.param("{}", "$.mode: missing, expected MPOL_DEFAULT or", id="no mode"),
        pytest.param("{mode: MPOL_BIND}", "$.nodes: missing,", id="no nodes to bind"),
        pytest.param(
            "{mode: MPOL_LOCAL, nodes: all}",
            "$.nodes: MPOL_LOCAL takes none",
            id="nodes for where it is",
        ),
        pytest.param(
            "{mode: MPOL_DEFAULT, nodes: '0'}",
            "$.nodes: MPOL_DEFAULT takes none",
            id="nodes for the default",
        ),
        pytest.param(
            "{mode: MPOL_BIND, nodes: 1-0}", f"$.nodes: {NODES}", id="no list"
        ),
        pytest.param("{mode: MPOL_BIND, nodes: ','}", f"$.nodes: {NODES}", id="empty"),
        pytest.param(
            "{mode: MPOL_BIND, nodes: 'max-dist:'}", f"$.nodes: {NODES}", id="how far?"
        ),
        pytest.param(
            "{mode: MPOL_BIND, nodes: 'max-dist:1x'}", f"$.nodes: {NODES}", id="so far"
        ),
        pytest.param(
            "{mode: MPOL_BIND, nodes: 'max-dist:1000'}", f"$.nodes: {NODES}", id="far"
        ),
        pytest.param(
            "{mode: MPOL_BIND, nodes: [0]}", "$.nodes: expected text", id="YAML's list"
        ),
        pytest.param(
            "{mode: MPOL_BIND, nodes: all, flags: [MPOL_F_STATIC]}",
            "$.flags[0]: unknown value, did you mean MPOL_F_STATIC_NODES?",
            id="an unknown flag",
        ),
        pytest.param(
            "{mode: MPOL_BIND, nodes: all, flags: "
            "[MPOL_F_STATIC_NODES, MPOL_F_RELATIVE_NODES]}",
            "$.flags: MPOL_F_RELATIVE_NODES and MPOL_F_STATIC_NODES exclude each other",
            id="flags that exclude each other",
        ),
        pytest.param(
            "{mode: MPOL_PREFERRED, flags: [MPOL_F_STATIC_NODES]}",
            "$.flags: MPOL_F_STATIC_NODES needs nodes",
            id="fixed nodes without nodes",
        ),
        pytest.param(
            "{mode: MPOL_INTERLEAVE, nodes: all, flags: [MPOL_F_NUMA_BALANCING]}",
            "$.flags: MPOL_F_NUMA_BALANCING needs MPOL_BIND or MPOL_PREFERRED_MANY",
            id="balancing of what is spread",
        ),
        pytest.param("[]", "$: expected a mapping", id="a list"),
    ],
)
def test_a_mistake_in_a_policy_is_reported(policy: str, complaint: str) -> None:
    with pytest.raises(BadSetting) as error:
        parse_numa_policy(policy)
    with pytest.raises(BadSetting) as in_file:
        read_policies({"classes": [{"name": "a", "policy": yaml.safe_load(policy)}]})

    assert str(error.value).startswith(complaint)
    there = complaint.replace("$", "$.memoryPolicy.classes[0].policy", 1)
    assert str(in_file.value).startswith(there)


def test_a_class_without_a_policy_is_a_mistake() -> None:
    with pytest.raises(BadSetting) as error:
        read_policies({"classes": [{"name": "a"}]})

    path = "$.memoryPolicy.classes[0].policy"
    assert str(error.value) == f"{path}: missing, expected a mapping"
