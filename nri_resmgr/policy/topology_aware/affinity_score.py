"""How much containers attract a new one, and the pools that they are in with them."""

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

NO_ATTRACTION: Final[Mapping[str, int]] = MappingProxyType({})
"""Of a container that nobody attracts; most are."""

# Of each neighbour in the pod, or the namespace, that is to be near.
_COLOCATION: Final = 10

# With every step between two pools a quarter of the attraction is lost. Whole
# numbers make equal scores compare equal: 3 of 4 parts are kept, times 4 per level.
_KEPT, _OF = 3, 4


def attraction(
    spec: ContainerSpec, ledger: Ledger, settings: TopologyAwareSettings
) -> Mapping[str, int]:
    """Sum up how much each container attracts *spec*.

    Returns:
        The weights by container id, those of 0 left out; below 0 repels. Empty for
        a container without rules, unless the settings want pods or namespaces to
        be close together.

    Source:
        nri-plugins, docs/resource-policy/container-affinity.md.
    """
    rules = spec.preferences.affinities
    if rules:
        weights = _by_rules(spec, rules, ledger)
    elif settings.colocate_pods or settings.colocate_namespaces:
        weights = _by_settings(spec, ledger, settings)
    else:
        return NO_ATTRACTION
    weights.pop(spec.id, None)
    return {key: weight for key, weight in weights.items() if weight}


def pool_scores(
    weights: Mapping[str, int], grants: Mapping[str, Grant], tree: PoolTree
) -> tuple[int, ...]:
    """Say how attractive each pool is, by pool id.

    A pool is attractive by what is granted in it, and by three quarters for each
    step by what is granted in a pool above or below it; pools beside it do not
    count.

    Returns:
        Scores times 4 for each level of the tree: only their order means something.

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
    everyone = [entry.spec for entry in ledger.entries.values()]
    own_pod = [other for other in everyone if other.pod == spec.pod]
    for rule in rules:
        matches = predicate_of(rule.match)
        asked = own_pod
        if rule.scope is not None:
            asked = list(filter(predicate_of(rule.scope), everyone))
        for other in asked:
            if matches(other):
                weights[other.id] = weights.get(other.id, 0) + rule.weight
    return weights


def _by_settings(
    spec: ContainerSpec, ledger: Ledger, settings: TopologyAwareSettings
) -> dict[str, int]:
    weights: dict[str, int] = {}
    pods = settings.colocate_pods
    namespaces = settings.colocate_namespaces
    for key, entry in ledger.entries.items():
        near = (pods and entry.spec.pod == spec.pod) + (
            namespaces and entry.spec.namespace == spec.namespace
        )
        weights[key] = _COLOCATION * near
    return weights
