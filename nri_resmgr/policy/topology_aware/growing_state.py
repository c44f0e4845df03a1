"""A state while running containers are added to it, which changes in place."""

from __future__ import annotations

from types import MappingProxyType
from typing import Self

import attrs
from msgspec.structs import replace

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.ledger import Entry, Ledger
from nri_resmgr.policy.mems import MemoryLedger
from nri_resmgr.policy.topology_aware.pool_ledger import Grant, PoolLedger
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import NodeView, TopologyAwareState


@attrs.define(eq=False)
class GrowingState:
    """Containers with their grants, to which more are added one after the other.

    A new state for each of thousands of containers would copy all containers before it.
    So `put` and `regrant` change these tables. Views show the tables themselves, and
    hold until the next change only.
    """

    _before: TopologyAwareState
    _entries: dict[str, Entry]
    _pods: dict[str, tuple[str, ...]]
    _grants: dict[str, Grant]
    _pool_ledger: PoolLedger
    _memory: MemoryLedger

    @classmethod
    def of(cls, state: TopologyAwareState) -> Self:
        """Begin with the containers of *state*, which stays as it is."""
        return cls(
            state,
            dict(state.ledger.entries),
            dict(state.ledger.pods),
            dict(state.grants),
            state.pool_ledger,
            state.memory,
        )

    def view(self, settings: TopologyAwareSettings) -> NodeView:
        """Return what placing the next container needs to know."""
        return NodeView(
            self._pool_ledger.tree,
            settings,
            self._ledger,
            MappingProxyType(self._grants),
            self._pool_ledger,
            self._memory,
        )

    def put(self, spec: ContainerSpec, grant: Grant, memory: MemoryLedger) -> None:
        """Add a running container that is not here yet; *memory* includes it."""
        self._entries[spec.id] = Entry(spec, spec.present)
        self._pods[spec.pod] = (*self._pods.get(spec.pod, ()), spec.id)
        self._grants[spec.id] = grant
        self._pool_ledger = self._pool_ledger.add(grant)
        self._memory = memory

    def regrant(self, *changed: Grant) -> None:
        """Replace the grants of containers; their memory stays."""
        for grant in changed:
            left = self._pool_ledger.remove(self._grants[grant.container])
            self._pool_ledger = left.add(grant)
            self._grants[grant.container] = grant

    def finished(self) -> TopologyAwareState:
        """Return the state with all containers; nothing may be added afterwards."""
        return replace(
            self._before,
            ledger=self._ledger,
            grants=MappingProxyType(self._grants),
            pool_ledger=self._pool_ledger,
            memory=self._memory,
        )

    @property
    def _ledger(self) -> Ledger:
        return Ledger(MappingProxyType(self._entries), self._pods)
