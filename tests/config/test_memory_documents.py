"""Memory classes in documents of all kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.classes.memory import (
    MemoryQosClass,
    MemoryQosConfig,
    NumaPolicy,
    PolicyFlag,
    PolicyMode,
)
from nri_resmgr.config import BadSetting
from nri_resmgr.config.memory_classes import NumaPolicyConfig
from nri_resmgr.config.mistakes import check_document
from nri_resmgr.policies import parse_config, read_config

ROOT: Final = Path(__file__).parents[2]
KINDS: Final = (
    "BalloonsPolicy",
    "NonePolicy",
    "DynamicPoolsPolicy",
    "PodpoolsPolicy",
    "StaticPlusPolicy",
    "StaticPolicy",
    "StaticPoolsPolicy",
    "TopologyAwarePolicy",
)

QOS: Final = "{classes: [{name: bronze, swapLimitRatio: 0.5}]}"
POLICY: Final = "{classes: [{name: all, policy: {mode: MPOL_INTERLEAVE, nodes: all}}]}"


def document(spec: str, kind: str = "TopologyAwarePolicy") -> str:
    return f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {spec}"


@pytest.mark.parametrize("kind", KINDS)
def test_documents_of_every_kind_have_memory_classes(kind: str) -> None:
    spec = f"{{memoryQos: {QOS}, memoryPolicy: {POLICY}, miscLimits: false}}"

    found = parse_config(document(spec, kind))

    assert (found.memory_qos, found.memory_policy, found.misc_limits) == (
        MemoryQosConfig({"bronze": MemoryQosClass(500_000)}),
        NumaPolicyConfig({"all": NumaPolicy(PolicyMode.INTERLEAVE, "all")}),
        False,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_without_memory_classes_only_limits_are_handled(kind: str) -> None:
    found = parse_config(document("{}", kind))

    assert (found.memory_qos, found.memory_policy, found.misc_limits) == (
        None,
        None,
        True,
    )


def test_an_empty_section_is_read_as_present() -> None:
    found = parse_config(document("{memoryQos: {}, memoryPolicy: {}}"))

    assert (found.memory_qos, found.memory_policy) == (
        MemoryQosConfig({}),
        NumaPolicyConfig({}),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_may_set_policies_where_the_runtime_cannot(kind: str) -> None:
    found = parse_config(document("{memoryPolicy: {injectMpolset: true}}", kind))

    assert found.memory_policy == NumaPolicyConfig({}, injects=True)
    assert found.ineffective == ()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        pytest.param(
            "{memoryQos: {classes: [{name: a, swapLimitRatio: 2}]}}",
            "$.spec.memoryQos.classes[0].swapLimitRatio: expected 0 to 1, not 2",
            id="more than all is swapped",
        ),
        pytest.param(
            "{memoryQoS: {}}",
            "$.spec.memoryQoS: unknown key, did you mean memoryQos?",
            id="a key in other letters",
        ),
        pytest.param(
            "{memoryPolicy: {classes: [{name: a, policy: {mode: MPOL_BIND}}]}}",
            "$.spec.memoryPolicy.classes[0].policy.nodes: missing, "
            "MPOL_BIND needs some",
            id="a policy without nodes",
        ),
        pytest.param(
            "{miscLimits: 4}",
            "$.spec.miscLimits: expected true or false, not 4",
            id="an amount for a flag",
        ),
    ],
)
def test_mistakes_are_reported_with_their_path(
    kind: str, spec: str, complaint: str
) -> None:
    with pytest.raises(BadSetting) as found:
        parse_config(document(spec, kind))

    assert str(found.value) == complaint


def test_all_mistakes_are_found() -> None:
    spec = """
  memoryQos: {classes: [{name: a, swapLimitRatio: 2}], unifiedAnnotations: [x]}
  miscLimits: 4
"""

    found = check_document(document(spec), read_config, lambda _: None)

    assert {one.path for one in found.mistakes if isinstance(one, BadSetting)} == {
        "$.spec.memoryQos.classes[0].swapLimitRatio",
        "$.spec.memoryQos.unifiedAnnotations[0]",
        "$.spec.miscLimits",
    }


def test_the_sample_is_read() -> None:
    text = (ROOT / "conf.d" / "memory-classes.conf").read_text(encoding="utf-8")

    found = parse_config(text)

    assert found.memory_qos == MemoryQosConfig(
        {"bronze": MemoryQosClass(500_000), "silver": MemoryQosClass(200_000)},
        ("memory.high", "memory.swap.max"),
    )
    near = NumaPolicy(PolicyMode.BIND, "cpu-nodes", (PolicyFlag.STATIC_NODES,))
    assert found.memory_policy is not None
    assert found.memory_policy.classes["near"] == near
    assert found == parse_config(text)
