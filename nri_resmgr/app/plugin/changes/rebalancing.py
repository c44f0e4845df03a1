"""Moves containers to better places, at request and periodically."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from nri_resmgr.app.background.periodic import until_tick
from nri_resmgr.app.background.threads import in_thread
from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.app.plugin.node_policy import NodePolicy
from nri_resmgr.config import PolicyConfig
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.events import Rebalance
from nri_resmgr.values import HostError, InputError

# As CRI Resource Manager measures: shorter ones say little about a CPU.
_WINDOW: Final = 1.0  # seconds


@dataclass(eq=False)
class DoesNotRebalance(InputError):
    """The policy in force never moves a container."""

    policy: str

    def __str__(self) -> str:
        return f"{self.policy} does not rebalance: its containers stay where they are"


@dataclass(eq=False)
class NotSynchronized(HostError):
    """No runtime is connected, so that containers may have come and gone."""

    def __str__(self) -> str:
        return "no runtime is synchronized: what runs is not known; try again later"


def rebalance(policy: NodePolicy, event: Rebalance) -> PolicyDecision:
    """Move containers to better places; return the decision, which is sent.

    Raises:
        DoesNotRebalance: The policy in force never moves any.
    """
    _check_rebalances(policy)
    decision = policy.decide(event)
    policy.send(decision.updates)
    return decision


def would_rebalance(policy: NodePolicy, event: Rebalance) -> PolicyDecision:
    """Return what `rebalance` would decide, and change nothing.

    Raises:
        DoesNotRebalance: The policy in force never moves any.
    """
    _check_rebalances(policy)
    return policy.engine.propose(event)


def _check_rebalances(policy: NodePolicy) -> None:
    if not policy.policy.rebalances:
        raise DoesNotRebalance(policy.config.kind)


class Rebalancer(DecisionObserver):
    """Measures how busy CPUs are, and has the policy decide which containers move."""

    def __init__(self) -> None:
        self._configured = asyncio.Event()

    def configured(self, config: PolicyConfig) -> None:  # noqa: ARG002 - `run` reads it
        """Begin the interval of another configuration."""
        self._configured.set()

    async def run(
        self, policy: NodePolicy, tree: Tree, is_ready: Callable[[], bool]
    ) -> None:
        """Rebalance as often as the configuration says, until cancelled.

        Raises:
            HostError: It cannot be read how busy CPUs are.
        """
        while True:
            self._configured.clear()
            use = policy.config.rebalance
            due = policy.policy.rebalances and use.interval
            with suppress(TimeoutError):
                async with asyncio.timeout(until_tick(use.interval) if due else None):
                    await self._configured.wait()
                    continue
            with suppress(NotSynchronized):
                await measure_and_rebalance(policy, tree, is_ready)


async def measure_and_rebalance(
    policy: NodePolicy,
    tree: Tree,
    is_ready: Callable[[], bool],
    *,
    at_most: int = 0,
    dry_run: bool = False,
) -> PolicyDecision:
    """Rebalance once, by how busy CPUs are now.

    Args:
        policy: The policy in force.
        tree: The host, of which the times of CPUs are read.
        is_ready: Returns whether a runtime is synchronized.
        at_most: The most containers that move; 0 for what the configuration says.
        dry_run: Whether to decide only.

    Raises:
        DoesNotRebalance: The policy in force never moves any.
        HostError: It cannot be read how busy CPUs are, or no runtime is synchronized.
    """
    _check_ready(is_ready)
    busy: dict[int, int] = {}
    if policy.policy.rebalances:  # else it is refused at once
        # Late: on the start path, and few nodes rebalance.
        from nri_resmgr.host.cpu_time import busy_between, read_ticks

        before = await in_thread(lambda: read_ticks(tree))
        await asyncio.sleep(_WINDOW)
        after = await in_thread(lambda: read_ticks(tree))
        busy = busy_between(before, after)
        _check_ready(is_ready)
    event = Rebalance(at_most or policy.config.rebalance.at_most, busy)
    return (would_rebalance if dry_run else rebalance)(policy, event)


def _check_ready(is_ready: Callable[[], bool]) -> None:
    if not is_ready():
        raise NotSynchronized
