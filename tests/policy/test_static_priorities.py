"""Exclusive CPUs of the static policies are fast ones where CPUs differ."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from nri_resmgr.policy.events import ContainerSpec, Created
from nri_resmgr.policy.static import StaticPolicy, StaticSettings
from nri_resmgr.policy.static_plus import StaticPlusPolicy, StaticPlusSettings
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, KiloHertz, MilliCpus, QosClass

FAST = CpuSet.parse("3,6")


def machine() -> Machine:
    found = parse_spec("1s1n8c1t")
    cpus = tuple(
        replace(one, base=KiloHertz(3 if one.id in FAST else 2)) for one in found.cpus
    )
    return replace(found, cpus=cpus)


@pytest.mark.parametrize(
    ("policy", "settings"),
    [(StaticPolicy, StaticSettings), (StaticPlusPolicy, StaticPlusSettings)],
)
def test_fast_cpus_are_granted_first(policy: Any, settings: Any) -> None:
    model = machine()
    rules = settings(available=model.online, reserved=CpuSet.of(0))
    amount = MilliCpus(2000)
    spec = ContainerSpec("a", qos=QosClass.GUARANTEED, request=amount, limit=amount)
    made = policy(model, rules)

    assert made.decide(made.start(), Created(spec)).pin.cpus == FAST
