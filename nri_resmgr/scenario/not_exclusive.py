"""Why Guaranteed containers have no exclusive CPUs, and what would give them some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from nri_resmgr.policy.advice import with_cpus
from nri_resmgr.policy.decision import Reason
from nri_resmgr.policy.events import ContainerSpec, Created, Stopped
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.sentences import RULE_SENTENCES
from nri_resmgr.policy.views import PoolUse, ViewedPolicy
from nri_resmgr.values import NO_CPUS, ONE_CPU, CpuSet, PolicyError
from nri_resmgr.values.counts import count_text

KEEPING: Final = frozenset(
    {
        *(Rule.KEPT, Rule.UNCHANGED, Rule.OLD_PLACE, Rule.REBALANCED, Rule.HINTED),
        *(Rule.GROWN_IN_PLACE, Rule.SHRUNK_IN_PLACE, Rule.MOVED),
        *(Rule.COLD_START, Rule.COLD_START_ENDED),
    }
)
"""Rules by which a container stays as exclusive or shared as it was before."""

# With these, the policy would let it share CPUs also if it were alone.
_SHARES: Final = frozenset(
    {
        *(Rule.RESERVED_NAMESPACE, Rule.RESERVED_ASKED, Rule.RESERVED_FULL),
        *(Rule.NOT_GUARANTEED, Rule.NOT_WHOLE_CPUS, Rule.SHARED_ASKED),
        *(Rule.FELL_BACK, Rule.PRESERVED, Rule.NOT_PINNED, Rule.NO_REQUEST),
    }
)


def exclusive_by_container(
    policy: ViewedPolicy[KnowsContainers], state: KnowsContainers
) -> Mapping[str, CpuSet]:
    """Return the exclusive CPUs of each container, by id; empty where it has none."""
    granted = exclusive_in(policy.pools(state))
    # Of a balloon, whose CPUs are exclusive to a container as long as it is alone.
    alone = policy.exclusive_parts(state)
    return {
        key: pin.cpus & (granted | alone.get(key, NO_CPUS))
        for key, pin in policy.pins(state).items()
    }


def exclusive_in(pools: tuple[PoolUse, ...]) -> CpuSet:
    """Return the CPUs that pools have granted exclusively."""
    return CpuSet.union(pool.exclusive for pool in pools)


class SharedGuaranteed:
    """Finds the reasons, those of equal containers once.

    Args:
        policy: The policy.
        state: Its state.
    """

    def __init__(
        self, policy: ViewedPolicy[KnowsContainers], state: KnowsContainers
    ) -> None:
        self._policy = policy
        self._state = state
        self._pool_of = {
            key: pool for pool in policy.pools(state) for key in pool.containers
        }
        self._helps: dict[tuple[object, ...], str] = {}

    def why(self, spec: ContainerSpec, reason: Reason | None) -> str:
        """Return why a container shares its CPUs, as a sentence about it.

        *reason* is that of the decision by which it shares them.
        """
        parts = []
        if reason is not None:
            parts.append(RULE_SENTENCES[reason.rule])
            if reason.rule is Rule.FELL_BACK:
                parts[-1] += f": {reason.detail.replace(spec.title, 'it')}"
        pool = self._pool_of.get(spec.id)
        if pool and (reason is None or reason.rule not in _SHARES):
            others = len(pool.containers) - 1
            beside = f"with {count_text(others, 'other container')}"
            parts.append(f"it shares {pool.name} {beside}" if others else "")
        kind = (spec.request, reason and reason.rule, spec.preferences, spec.namespace)
        if kind not in self._helps:
            self._helps[kind] = self._help_for(spec)
        return "; ".join(filter(None, (*parts, self._helps[kind])))

    def _help_for(self, spec: ContainerSpec) -> str:
        """Return the request for whole CPUs that would be exclusive, if any is."""
        count = -(-spec.request // ONE_CPU)
        if count * ONE_CPU == spec.request:
            return ""
        asked = replace(with_cpus(count)(spec), shares_budget=False)
        if not self._is_exclusive(asked):
            return ""
        return f"to help, ask for {count_text(count, 'whole CPU')}"

    def _is_exclusive(self, spec: ContainerSpec) -> bool:
        """Return whether a container has exclusive CPUs if it is created anew."""
        policy = self._policy
        try:
            without = policy.decide(self._state, Stopped(spec.id)).state
            after = policy.decide(without, Created(spec)).state
        except PolicyError:
            return False
        return bool(exclusive_by_container(policy, after)[spec.id])
