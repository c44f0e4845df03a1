"""Memory classes: what they mean, and who asks for them."""

from __future__ import annotations

from collections.abc import Iterator

from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.control.containers import Data


def memory_classes_of(policy: ResourcePolicy) -> Data | None:
    """Say which classes there are; None where both kinds are switched off."""
    config = policy.config
    if config.memory_qos is None and config.memory_policy is None:
        return None
    from nri_resmgr.app.classes.memory.containers import (
        memory_owners,  # few nodes have classes
    )

    owners: dict[tuple[str, str], list[str]] = {}
    for one in memory_owners(policy):
        owners.setdefault((one.kind, one.name), []).append(one.title)
    return {
        "classes": [
            {
                "kind": kind,
                "name": name,
                "means": means,
                "containers": sorted(owners.get((kind, name), ())),
            }
            for kind, name, means in _classes(policy)
        ]
    }


def _classes(policy: ResourcePolicy) -> Iterator[tuple[str, str, str]]:
    from nri_resmgr.app.classes.memory.containers import POLICY, QOS
    from nri_resmgr.classes.memory.qos import WHOLE

    config = policy.config
    if config.memory_qos is not None:
        for name, one in config.memory_qos.classes.items():
            yield QOS, name, f"{one.swapped * 100 / WHOLE:g}% of the limit swapped"
    if config.memory_policy is not None:
        for name, numa in config.memory_policy.classes.items():
            words = (numa.mode, numa.nodes, *numa.flags)
            yield POLICY, name, " ".join(filter(None, words))
