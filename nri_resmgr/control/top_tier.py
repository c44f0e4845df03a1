"""Limits of fast memory, as JSON data and as sentences of one container."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nri_resmgr.app.plugin.node_policy import NodePolicy
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.values.documents import JsonObject

_KEY: Final = "toptierlimit"


def top_tier_limits(policy: NodePolicy) -> list[JsonObject]:
    """Describe the limit of each container that has one, by annotation."""
    entries = policy.state.ledger.entries.values()
    specs = [
        one.spec for one in entries if one.spec.preferences.top_tier_limit is not None
    ]
    if not specs:
        return []
    host = policy.class_hosts.top_tier
    return [
        {
            "container": spec.title,
            "limit": spec.preferences.top_tier_limit,
            "written": spec.id in host.applied,
            "why": host.why_not(spec),
        }
        for spec in specs
    ]


def top_tier_sentences(spec: ContainerSpec, policy: NodePolicy) -> Iterator[str]:
    """Yield the limit of a container and whether it is in force."""
    if spec.preferences.top_tier_limit is not None:
        yield from policy.class_hosts.top_tier.sentences(spec)


def top_tier_ineffective(spec: ContainerSpec, policy: NodePolicy) -> Iterator[str]:
    """Yield why the limit of a container has no effect."""
    if spec.preferences.top_tier_limit is None:
        return
    if why := policy.class_hosts.top_tier.ineffective.get(spec.id):
        yield f"annotation {_KEY} has no effect: {why}"
