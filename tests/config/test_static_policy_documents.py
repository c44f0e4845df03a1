from __future__ import annotations

from pathlib import Path
from typing import Final

import hypothesis.strategies as st
import pytest
import yaml
from hypothesis import given

from nri_resmgr.classes.isolation.exclusivity import Exclusivity
from nri_resmgr.config import (
    AllBut,
    Amount,
    BadSetting,
    BadSyntax,
    Listed,
    OfCgroup,
    PolicyConfig,
    StaticPolicyConfig,
)
from nri_resmgr.policies import parse_config
from nri_resmgr.values import CpuSet, InputError

ROOT: Final = Path(__file__).parents[2]
HEAD: Final = "apiVersion: config.nri/v1alpha1\nkind: StaticPolicy\n"


def test_every_option_is_read() -> None:
    text = (
        HEAD
        + """
metadata: {name: default, namespace: kube-system}
spec:
  availableResources: {cpu: "exclude-cpuset:0,8"}
  reservedResources: {cpu: cpuset:1-2}
  reservedPoolNamespaces: [monitoring, kube-system, "infra-*"]
  pinCPU: false
  pinMemory: false
  preferIsolatedCPUs: false
  relaxedIsolation: true
  borrowIsolatedCPUs: true
  publishResources: false
  onFailure: shared
  exclusivity: partition
"""
    )

    assert parse_config(text) == StaticPolicyConfig(
        available=AllBut(CpuSet.of(0, 8)),
        reserved=Listed(CpuSet.of(1, 2)),
        reserved_pool_namespaces=("kube-system", "monitoring", "infra-*"),
        pin_cpu=False,
        pin_memory=False,
        prefer_isolated_cpus=False,
        relaxed_isolation=True,
        borrow_isolated_cpus=True,
        publish_resources=False,
        on_failure="shared",
        exclusivity=Exclusivity.PARTITION,
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(HEAD, id="no spec"),
        pytest.param(HEAD + "spec:\n", id="an empty spec"),
        pytest.param(HEAD + "spec: {reservedResources: {cpu: }}\n", id="empty rows"),
        pytest.param(HEAD + "spec: {pinCPU: , onFailure: }\n", id="empty values"),
    ],
)
def test_an_empty_spec_has_the_defaults(text: str) -> None:
    assert parse_config(text) == StaticPolicyConfig()


def test_a_text_without_content_has_the_defaults() -> None:
    nothing = parse_config("")

    assert parse_config("# only a comment\n") == nothing == type(nothing)()


def test_the_sample_has_the_defaults() -> None:
    text = (ROOT / "conf.d" / "static.conf").read_text(encoding="utf-8")

    assert parse_config(text) == StaticPolicyConfig()


@pytest.mark.parametrize(
    ("written", "choice"),
    [
        pytest.param("2", Amount(2), id="a number"),
        pytest.param('"2"', Amount(2), id="a quantity"),
        pytest.param("750m", Amount(1), id="a fraction is a whole CPU"),
        pytest.param("1.5", Amount(2), id="a decimal"),
        pytest.param("0", Amount(0), id="none, which no machine takes"),
        pytest.param('" cpuset:0-3 "', Listed(CpuSet(15)), id="a list"),
        pytest.param("exclude-cpuset:0", AllBut(CpuSet(1)), id="all but a list"),
        pytest.param("cgroup:system", OfCgroup("system"), id="a cgroup's"),
        pytest.param("/a.slice", OfCgroup("/a.slice"), id="a cgroup by its path"),
    ],
)
def test_cpus_can_be_written(written: str, choice: object) -> None:
    text = f"{HEAD}spec: {{reservedResources: {{cpu: {written}}}}}"

    assert parse_config(text) == StaticPolicyConfig(
        reserved=choice,  # type: ignore[arg-type] # the table holds choices of every kind
    )


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        pytest.param(
            "{pinCPUs: true}",
            "$.spec.pinCPUs: unknown key, did you mean pinCPU?",
            id="a key in the plural",
        ),
        pytest.param(
            "{pincpu: true}",
            "$.spec.pincpu: unknown key, did you mean pinCPU?",
            id="a key in other letters",
        ),
        pytest.param(
            "{reservedResources: {cpus: 1}}",
            "$.spec.reservedResources.cpus: unknown key, did you mean cpu?",
            id="a key further down",
        ),
        pytest.param("[]", "$.spec: expected a mapping, not a list", id="a list"),
        pytest.param("x", "$.spec: expected a mapping, not 'x'", id="a word"),
        pytest.param(
            "{pinCPU: 1}", "$.spec.pinCPU: expected true or false, not 1", id="a flag"
        ),
        pytest.param(
            "{onFailure: share}",
            "$.spec.onFailure: unknown value, did you mean shared?",
            id="nearly a choice",
        ),
        pytest.param(
            "{onFailure: maybe}",
            "$.spec.onFailure: unknown value, expected refuse or shared",
            id="no choice",
        ),
        pytest.param(
            "{reservedPoolNamespaces: [a, 1]}",
            "$.spec.reservedPoolNamespaces[1]: expected text, not 1",
            id="a number in a list of text",
        ),
        pytest.param(
            "{reservedPoolNamespaces: a}",
            "$.spec.reservedPoolNamespaces: expected a list, not 'a'",
            id="text for a list",
        ),
        pytest.param(
            "{reservedResources: {cpu: true}}",
            "$.spec.reservedResources.cpu: expected text, not True",
            id="a flag for CPUs",
        ),
        pytest.param(
            "{reservedResources: {cpu: -1}}",
            "$.spec.reservedResources.cpu: bad quantity '-1': negative; expected a "
            "quantity, cpuset:LIST, exclude-cpuset:LIST or cgroup:PATH",
            id="a negative quantity",
        ),
        pytest.param(
            "{availableResources: {cpu: 0-3}}",
            "$.spec.availableResources.cpu: bad quantity '0-3': not a number with a "
            "Kubernetes suffix; for a list of CPUs write cpuset:0-3",
            id="a list without its prefix",
        ),
        pytest.param(
            "{availableResources: {cpu: 'cpuset:3-1'}}",
            "$.spec.availableResources.cpu: not a CPU or node list: '3-1' (at '3-1')",
            id="a list the wrong way round",
        ),
    ],
)
def test_a_mistake_is_reported_with_its_path(spec: str, complaint: str) -> None:
    with pytest.raises(BadSetting) as found:
        parse_config(f"{HEAD}spec: {spec}")

    assert str(found.value) == complaint


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param(
            "kind: StaticPolicy",
            "$.apiVersion: missing, expected config.nri/v1alpha1",
            id="no version",
        ),
        pytest.param(
            "apiVersion: config.nri/v1alpha1",
            "$.kind: missing, expected BalloonsPolicy or DynamicPoolsPolicy or "
            "NonePolicy or PodpoolsPolicy or StaticPlusPolicy or StaticPolicy or "
            "StaticPoolsPolicy or TopologyAwarePolicy",
            id="no kind",
        ),
        pytest.param(
            HEAD.replace("alpha1", "beta1"),
            "$.apiVersion: unknown value, did you mean config.nri/v1alpha1?",
            id="another version",
        ),
        pytest.param(
            HEAD.replace("Static", "Statics"),
            "$.kind: unknown value, did you mean StaticPolicy? "
            "expected BalloonsPolicy or DynamicPoolsPolicy or NonePolicy or "
            "PodpoolsPolicy or StaticPlusPolicy or StaticPolicy or "
            "StaticPoolsPolicy or TopologyAwarePolicy",
            id="another kind",
        ),
        pytest.param("[1]", "$: expected a mapping, not a list", id="a list"),
        pytest.param("{1: 2}", "$.1: unknown key, expected ", id="a number for a key"),
    ],
)
def test_a_document_needs_its_version_and_kind(text: str, complaint: str) -> None:
    with pytest.raises(BadSetting) as found:
        parse_config(text)

    assert str(found.value).startswith(complaint)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("a: [1,\nb: }", "line 2: ", id="brackets that do not match"),
        pytest.param("a: 1\nb: 2\na: 3", "line 3: duplicate key 'a'", id="twice"),
        pytest.param("a: 1\n[b]: 2", "line 2: a key must be text", id="a list as key"),
        pytest.param("a: 1\n---\nb: 2", "line 2: ", id="two documents"),
        pytest.param("a: !!python/object:os.x {}", "line 1: ", id="an object"),
        pytest.param("a: 2001-99-99", "invalid value: ", id="a day that never was"),
        pytest.param("a: \x01", "", id="a control character"),
        pytest.param("a: \ud800", "invalid value: ", id="half a character"),
        pytest.param("\n" + "[" * 9999, "line 2: more than 64 levels deep", id="deep"),
        pytest.param(
            "#" * (2 << 20) + "#", "2097153 characters, expected at most", id="large"
        ),
        pytest.param("a: &x [*x, *y]", "line 1: ", id="an anchor that is not there"),
    ],
)
def test_an_invalid_document_is_reported_with_its_line(
    text: str, complaint: str
) -> None:
    with pytest.raises(BadSyntax) as found:
        parse_config(text)

    assert str(found.value).startswith(complaint)
    assert "\n" not in str(found.value)


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["cpu", "pinCPU", "onFailure", "x"])
            | st.sampled_from(["reservedResources", "reservedPoolNamespaces"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


def outcome_of(text: str) -> PolicyConfig | InputError:
    try:
        return parse_config(text)
    except InputError as problem:
        return problem


@given(TREES)
def test_any_spec_is_read_or_refused_by_its_path(spec: object) -> None:
    outcome = outcome_of(HEAD + yaml.safe_dump({"spec": spec}))

    assert isinstance(outcome, StaticPolicyConfig | BadSetting)
    assert not isinstance(outcome, BadSetting) or outcome.path.startswith("$.spec")


@given(
    st.text(st.sampled_from("ab:[]{}-,&*!|>'\"\n #%?1.~<=@\t\0é\ud800"), max_size=40)
)
def test_any_text_is_read_or_refused_with_a_message(text: str) -> None:
    outcome = outcome_of(text)

    assert isinstance(outcome, StaticPolicyConfig) or str(outcome)
