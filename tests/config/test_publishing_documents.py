"""``publish``: what of a node the cluster gets to know."""

from __future__ import annotations

import pytest

from nri_resmgr.config import BadSetting
from nri_resmgr.config.policy_config import PublishUse
from nri_resmgr.policies import parse_config


def publish(kind: str, text: str) -> PublishUse:
    head = f"apiVersion: config.nri/v1alpha1\nkind: {kind}\n"
    return parse_config(f"{head}spec: {{{text}}}\n").publish


@pytest.mark.parametrize(
    "kind",
    ["StaticPolicy", "StaticPlusPolicy", "StaticPoolsPolicy", "TopologyAwarePolicy"],
)
def test_kinds_that_grant_cpus_publish_them(kind: str) -> None:
    text = """publish: {exclusiveCPUs: true, by: node-status, nodeFeatures: true,
        rdtClasses: [{name: gold, containers: 3}]}"""
    assert publish(kind, text) == PublishUse("node-status", True, {"gold": 3}, True)
    assert publish(kind, "") == PublishUse("device-plugin", False, {}, False)


@pytest.mark.parametrize(
    "kind", ["BalloonsPolicy", "DynamicPoolsPolicy", "NonePolicy", "PodpoolsPolicy"]
)
def test_other_kinds_publish_all_but_exclusive_cpus(kind: str) -> None:
    text = "publish: {nodeFeatures: true, rdtClasses: [{name: gold, containers: 1}]}"
    assert publish(kind, text) == PublishUse(
        rdt_classes={"gold": 1}, node_features=True
    )
    with pytest.raises(BadSetting, match=r"^\$\.spec\.publish\.exclusiveCPUs: "):
        publish(kind, "publish: {exclusiveCPUs: true}")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("by: annotation", "by: unknown value"),
        ("exclusiveCpus: true", "exclusiveCpus: unknown key, did you mean"),
        ("rdtClasses: [{name: a}]", "rdtClasses[0].containers: missing"),
        ("rdtClasses: [{name: a, containers: 0}]", "containers: expected 1 to 65536"),
        ("rdtClasses: [{name: -a, containers: 1}]", "name: '-a' cannot be the name"),
        (f"rdtClasses: [{{name: {'a' * 64}, containers: 1}}]", "63 at most"),
        (
            "rdtClasses: [{name: a, containers: 1}, {name: a, containers: 1}]",
            "duplicate name 'a'",
        ),
    ],
)
def test_mistakes_are_named(text: str, why: str) -> None:
    with pytest.raises(BadSetting) as caught:
        publish("StaticPolicy", f"publish: {{{text}}}")
    assert why in str(caught.value)


def test_a_class_that_is_published_has_a_name_that_a_resource_can_have() -> None:
    classes = "[{name: a b, pctPriority: high, publishExtendedResource: true}]"
    with pytest.raises(BadSetting, match="'a b' cannot be the name"):
        publish("BalloonsPolicy", f"cpuClasses: {classes}")
