"""Policies with a busy past, and what is written down of them."""

from __future__ import annotations

import json
import zlib
from typing import Any, Final

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.checkpoint.encode import Draft, checkpoint
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.decision import Policy
from nri_resmgr.policy.events import ContainerSpec, Created, Stopped
from nri_resmgr.policy.pool_request import PoolRequest
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, MilliCpus, QosClass

KINDS: Final = (
    "TopologyAwarePolicy",
    "BalloonsPolicy",
    "StaticPolicy",
    "StaticPlusPolicy",
    "DynamicPoolsPolicy",
    "PodpoolsPolicy",
    "StaticPoolsPolicy",
    "NonePolicy",
)


_SPECS: Final = {
    "NonePolicy": "{}",
    "StaticPoolsPolicy": "{pools: [{name: own, exclusive: true, "
    "cpuLists: [{cpus: '1-2'}, {cpus: '5-6'}]}]}",
}


def policy_of(kind: str, machine: str = "2s1n4c1t") -> Policy[Any]:
    spec = _SPECS.get(kind, "{reservedResources: {cpu: 'cpuset:0'}}")
    text = f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {spec}\n"
    return build_policy(parse_config(text), parse_spec(machine))


def spec(name: str, whole: int = 0) -> ContainerSpec:
    cpus = MilliCpus(1000 * whole)
    return ContainerSpec(
        id=name,
        pod="p",
        title=f"ns/p/{name}",
        slot=name,
        qos=QosClass.GUARANTEED if whole else QosClass.BURSTABLE,
        request=cpus or MilliCpus(100),
        limit=cpus or None,
        memory_request=Bytes(1 << 30),
        memory_limit=Bytes(1 << 30),
        name=name,
        labels={"app": "x"},
        pool_request=PoolRequest("own" if whole else ""),
    )


def busy(policy: Policy[Any]) -> Any:
    """A state with something in every table that fills by itself."""
    state = policy.start()
    for event in (
        Created(spec("gone", 1)),
        Created(spec("own", 2)),
        Created(spec("shares")),
        Stopped("gone"),
    ):
        state = policy.decide(state, event).state
    return state


def text_of(policy: Policy[Any], state: Any) -> str:
    return checkpoint(Draft().lines_of(policy, state), policy.kind, "1.0", "today")


def sealed(header: dict[str, Any], rows: list[Any]) -> str:
    """Write a checkpoint by hand, with all that guards it."""
    body = "".join(f"{json.dumps(row)}\n" for row in rows)
    first = {
        "checkpoint": "nri-resmgr",
        "format": 1,
        "version": "1.0",
        "policy": "TopologyAwarePolicy",
        "written": "today",
        "crc32": zlib.crc32(body.encode()),
    }
    return f"{json.dumps(first | header)}\n{body}"


def rows_of(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()[1:]]
