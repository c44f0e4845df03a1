from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import hypothesis.strategies as st
import pytest
import yaml
from hypothesis import given

from nri_resmgr.classes.isolation.exclusivity import Exclusivity
from nri_resmgr.config import (
    AllBut,
    BadSetting,
    OfCgroup,
    PolicyConfig,
    TopologyAwareConfig,
)
from nri_resmgr.config.policy_config import RebalanceUse
from nri_resmgr.policies import parse_config
from nri_resmgr.policies.find import BUILT_IN
from nri_resmgr.values import CpuSet

ROOT: Final = Path(__file__).parents[2]
HEAD: Final = "apiVersion: config.nri/v1alpha1\nkind: TopologyAwarePolicy\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{}", RebalanceUse(0.0, 5)),
        ("{interval: 10m}", RebalanceUse(600.0, 5)),
        ("{interval: 1h30m, atMost: 1}", RebalanceUse(5400.0, 1)),
        ("{interval: 0}", RebalanceUse(0.0, 5)),
    ],
)
def test_rebalancing(text: str, found: RebalanceUse) -> None:
    assert parse_config(f"{HEAD}spec: {{rebalance: {text}}}").rebalance == found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{interval: 30}", "$.spec.rebalance.interval: expected a duration such as"),
        ("{interval: 500ms}", "$.spec.rebalance.interval: expected 1s or more, or 0"),
        ("{atMost: 0}", "$.spec.rebalance.atMost: expected 1 to 10000, not 0"),
        ("{every: 1m}", "$.spec.rebalance.every: unknown key"),
        ("5m", "$.spec.rebalance: expected a mapping"),
    ],
)
def test_mistakes_of_rebalancing(text: str, why: str) -> None:
    with pytest.raises(BadSetting, match=re.escape(why)):
        parse_config(f"{HEAD}spec: {{rebalance: {text}}}")


@pytest.mark.parametrize("kind", sorted(BUILT_IN))
def test_only_documents_of_kinds_that_rebalance_have_the_section(kind: str) -> None:
    text = f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {{rebalance: {{}}}}\n"
    if kind in ("TopologyAwarePolicy", "DynamicPoolsPolicy"):
        assert parse_config(text).rebalance == RebalanceUse()
    else:
        why = r"^\$\.spec\.rebalance: unknown key"
        with pytest.raises(BadSetting, match=why):
            parse_config(text)


def test_every_option_of_the_policy_is_read() -> None:
    text = (
        HEAD
        + """
spec:
  availableResources: {cpu: "exclude-cpuset:0,8"}
  reservedResources: {cpu: "cgroup:/system.slice"}
  reservedPoolNamespaces: [monitoring, kube-system, "infra-*"]
  pinCPU: false
  pinMemory: false
  preferIsolatedCPUs: false
  preferSharedCPUs: true
  colocatePods: true
  colocateNamespaces: true
  defaultCPUPriority: high
  unlimitedBurstable: die
  onFailure: shared
  placePods: strict
  publishResources: false
  isolationAnnotations: true
  exclusivity: isolated-partition
"""
    )

    assert parse_config(text) == TopologyAwareConfig(
        available=AllBut(CpuSet.of(0, 8)),
        reserved=OfCgroup("/system.slice"),
        reserved_pool_namespaces=("kube-system", "monitoring", "infra-*"),
        pin_cpu=False,
        pin_memory=False,
        prefer_isolated_cpus=False,
        prefer_shared_cpus=True,
        colocate_pods=True,
        colocate_namespaces=True,
        default_cpu_priority="high",
        unlimited_burstable="die",
        on_failure="shared",
        place_pods="strict",
        publish_resources=False,
        isolation=True,
        exclusivity=Exclusivity.ISOLATED_PARTITION,
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(HEAD, id="no spec"),
        pytest.param(HEAD + "spec:\n", id="an empty spec"),
        pytest.param(HEAD + "spec: {placePods: off}", id="off, which is YAML's false"),
        pytest.param(HEAD + "spec: {log: , agent: {}}\n", id="empty sections"),
        pytest.param(
            HEAD + "spec: {log: {source: false}, control: {rdt: {enable: false}}}",
            id="what is switched off is in force",
        ),
    ],
)
def test_an_empty_spec_has_the_defaults(text: str) -> None:
    assert parse_config(text) == TopologyAwareConfig()


def test_the_sample_has_the_defaults() -> None:
    text = (ROOT / "conf.d" / "resource-policy.conf").read_text(encoding="utf-8")

    assert parse_config(text) == TopologyAwareConfig()


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        pytest.param(
            "{preferSharedCPU: true}",
            "$.spec.preferSharedCPU: unknown key, did you mean preferSharedCPUs?",
            id="a key in the singular",
        ),
        pytest.param(
            "{PinCPU: true}",
            "$.spec.PinCPU: unknown key, did you mean pinCPU?",
            id="a key in CRI-RM's letters",
        ),
        pytest.param(
            "{colocatePods: 1}",
            "$.spec.colocatePods: expected true or false, not 1",
            id="a number for a flag",
        ),
        pytest.param(
            "{defaultCPUPriority: medium}",
            "$.spec.defaultCPUPriority: unknown value, expected high or normal or low "
            "or none",
            id="no priority",
        ),
        pytest.param(
            "{unlimitedBurstable: node}",
            "$.spec.unlimitedBurstable: unknown value, expected system or package or "
            "die or numa or l3cache",
            id="no level",
        ),
        pytest.param(
            "{placePods: firmly}",
            "$.spec.placePods: unknown value, expected off or soft or strict",
            id="no way of placing pods",
        ),
        pytest.param(
            "{placePods: on}",
            "$.spec.placePods: expected text, not True",
            id="on is YAML's true, and does not say which way",
        ),
        pytest.param(
            "{reservedResources: {cpu: many}}",
            "$.spec.reservedResources.cpu: bad quantity 'many': not a number with a "
            "Kubernetes suffix; expected a quantity, cpuset:LIST, exclude-cpuset:LIST "
            "or cgroup:PATH",
            id="no CPUs",
        ),
        pytest.param(
            "{reservedResources: {memory: 1Gi}}",
            "$.spec.reservedResources.memory: unknown key, expected cpu",
            id="memory cannot be reserved",
        ),
    ],
)
def test_a_mistake_is_reported_with_its_path(spec: str, complaint: str) -> None:
    with pytest.raises(BadSetting) as found:
        parse_config(f"{HEAD}spec: {spec}")

    assert str(found.value) == complaint


SAMPLES: Final = sorted((ROOT / "tests" / "config" / "nri_plugins").iterdir())
JUNK: Final = (
    st.none()
    | st.booleans()
    | st.integers(-1, 99)
    | st.floats()
    | st.sampled_from(["fifo", "a", "750m", "", "none", "5s", "cpuset:"])
    | st.lists(st.integers() | st.text(max_size=3), max_size=2)
    | st.dictionaries(st.sampled_from(["name", "cpu", "classes"]), st.integers())
)


@st.composite
def documents_with_a_mistake(draw: st.DrawFn) -> str:
    """Draw a sample with junk somewhere in its spec."""
    document = yaml.safe_load(draw(st.sampled_from(SAMPLES)).read_text())
    at, key = document, "spec"
    while isinstance(at[key], dict | list) and at[key] and draw(st.integers(0, 4)):
        at = at[key]
        key = draw(
            st.sampled_from(list(at) if isinstance(at, dict) else range(len(at)))
        )
    at[key] = draw(JUNK)
    return yaml.safe_dump(document)


def outcome_of(text: str) -> PolicyConfig | BadSetting:
    try:
        return parse_config(text)
    except BadSetting as problem:
        return problem


@given(documents_with_a_mistake())
def test_any_spec_is_read_or_refused_by_its_path(text: str) -> None:
    outcome = outcome_of(text)

    assert isinstance(outcome, PolicyConfig | BadSetting)
    assert not isinstance(outcome, BadSetting) or outcome.path.startswith("$.spec")
