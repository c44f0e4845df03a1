"""Affinity scores of pools, from the affinity of a container to others."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nri_resmgr.policy.affinity import Affinity
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.ledger import Ledger
from nri_resmgr.policy.matching import predicate_of
from nri_resmgr.policy.topology_aware.pool_ledger import Grant
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings

NO_WEIGHTS: Final[Mapping[str, int]] = MappingProxyType({})
"""The weights of a container without affinity rules, as most have none."""

# Weight of each container in the same pod, or the same namespace.
_COLOCATION: Final = 10

# A weight loses a quarter with every level between two pools. Scores are integers, that
# is multiplied by 4 per level, so that equal ones compare equal.
_KEPT, _OF = 3, 4


def affinity_weights(
    spec: ContainerSpec, ledger: Ledger, settings: TopologyAwareSettings
) -> Mapping[str, int]:
    """Sum up the affinity of *spec* to others, by their ids, without sums of 0.

    Weights are negative for anti-affinity. There are none for a container without
    rules, unless the settings colocate pods or namespaces.

    Source:
        nri-plugins, docs/resource-policy/container-affinity.md.
    """
    rules = spec.preferences.affinities
    if rules:
        weights = _by_rules(spec, rules, ledger)
    elif settings.colocate_pods or settings.colocate_namespaces:
        weights = _by_settings(spec, ledger, settings)
    else:
        return NO_WEIGHTS
    weights.pop(spec.id, None)
    return {key: weight for key, weight in weights.items() if weight}


def affinity_scores(
    weights: Mapping[str, int], grants: Mapping[str, Grant], tree: PoolTree
) -> tuple[int, ...]:
    """Return the affinity score of each pool, by pool id; only the order has a meaning.

    The score of a pool adds up the weights of its containers, and three quarters per
    level of those in pools above or below it. Pools beside it do not count.

    Source:
        nri-plugins, topology-aware, ``affinity.go``.
    """
    here: dict[int, int] = {}
    for key, weight in weights.items():
        if key in grants:
            at = grants[key].pool
            here[at] = here.get(at, 0) + weight
    levels = max(pool.depth for pool in tree.pools)
    kept = [_KEPT**n * _OF ** (levels - n) for n in range(levels + 1)]
    scores = [0] * len(tree.pools)
    for at, weight in here.items():
        pool = tree.pools[at]
        for other in {*pool.path, *pool.subtree}:
            distance = abs(pool.depth - tree.pools[other].depth)
            scores[other] += weight * kept[distance]
    return tuple(scores)


def _by_rules(
    spec: ContainerSpec, rules: tuple[Affinity, ...], ledger: Ledger
) -> dict[str, int]:
    weights: dict[str, int] = {}
    known = [entry.spec for entry in ledger.entries.values()]
    same_pod = [other for other in known if other.pod == spec.pod]
    for rule in rules:
        matches = predicate_of(rule.match)
        in_scope = same_pod
        if rule.scope is not None:
            in_scope = list(filter(predicate_of(rule.scope), known))
        for other in in_scope:
            if matches(other):
                weights[other.id] = weights.get(other.id, 0) + rule.weight
    return weights


def _by_settings(
    spec: ContainerSpec, ledger: Ledger, settings: TopologyAwareSettings
) -> dict[str, int]:
    weights: dict[str, int] = {}
    pods, namespaces = settings.colocate_pods, settings.colocate_namespaces
    for key, entry in ledger.entries.items():
        near = (pods and entry.spec.pod == spec.pod) + (
            namespaces and entry.spec.namespace == spec.namespace
        )
        weights[key] = _COLOCATION * near
    return weights
