from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.classes.isolation.exclusivity import Exclusivity
from nri_resmgr.config import Amount, BadSetting, Listed, StaticPlusPolicyConfig
from nri_resmgr.policies import find_kind, parse_config
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet

ROOT: Final = Path(__file__).parents[2]
HEAD: Final = "apiVersion: config.nri/v1alpha1\nkind: StaticPlusPolicy\n"


def test_every_option_is_read() -> None:
    text = """
spec:
  availableResources: {cpu: "cpuset:0-7"}
  reservedResources: {cpu: 1}
  reservedPoolNamespaces: ["infra-*"]
  pinCPU: false
  pinMemory: true
  preferIsolatedCPUs: false
  publishResources: false
  onFailure: shared
  exclusivity: partition
"""

    assert parse_config(HEAD + text) == StaticPlusPolicyConfig(
        available=Listed(CpuSet.parse("0-7")),
        reserved=Amount(1),
        reserved_pool_namespaces=("kube-system", "infra-*"),
        pin_cpu=False,
        pin_memory=True,
        prefer_isolated_cpus=False,
        publish_resources=False,
        on_failure="shared",
        exclusivity=Exclusivity.PARTITION,
    )


def test_the_sample_has_the_defaults() -> None:
    text = (ROOT / "conf.d" / "static-plus.conf").read_text(encoding="utf-8")

    assert parse_config(text) == parse_config(HEAD) == StaticPlusPolicyConfig()


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("{relaxedIsolation: true}", "$.spec.relaxedIsolation: unknown key"),
        ("{onFailure: wait}", "$.spec.onFailure: unknown value"),
        ("{pinMemory: 1}", "$.spec.pinMemory: "),
        ("{reservedResources: {cpu: 0-1}}", "$.spec.reservedResources.cpu: "),
    ],
)
def test_mistakes_name_their_path(spec: str, why: str) -> None:
    with pytest.raises(BadSetting) as caught:
        parse_config(f"{HEAD}spec: {spec}\n")

    assert str(caught.value).startswith(why)


@pytest.mark.parametrize(
    ("spec", "reserved"),
    [
        ("{}", "0"),
        ("{reservedResources: {cpu: 750m}}", "0"),
        (
            "{reservedResources: {cpu: 750m}, availableResources: {cpu: 'cpuset:3-7'}}",
            "3",
        ),
        ("{reservedResources: {cpu: 'cpuset:2,5'}}", "2,5"),
    ],
)
def test_a_small_amount_reserves_cpu_0_where_it_is_available(
    spec: str, reserved: str
) -> None:
    config = parse_config(f"{HEAD}spec: {spec}\n")
    policy = find_kind(config.kind).build(config, parse_spec("1s1n8c1t"), None)

    assert str(policy.settings.reserved) == reserved  # type: ignore[attr-defined]
