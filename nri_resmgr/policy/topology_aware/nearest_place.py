"""Search for a place, if need be where others make way: `make_room` says who does.

It is the same for a container, for all containers of a pod together, and for a claim:
these differ in how CPUs are found on a node, and in what is granted.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, Self, TypeVar

from nri_resmgr.policy.topology_aware.demand import Demand
from nri_resmgr.policy.topology_aware.make_room import (
    Yielding,
    all_that_share,
    could_be_nearer,
    may_be_in_the_way,
    movable_grants,
)
from nri_resmgr.policy.topology_aware.pool_ledger import Grant
from nri_resmgr.policy.topology_aware.state import NodeView
from nri_resmgr.values import PolicyError


class Found(Protocol):
    """What was found for a demand in a pool."""

    @property
    def pool_id(self) -> int:
        """The id of the pool."""
        ...

    @property
    def grants(self) -> tuple[Grant, ...]:
        """What is to be granted."""
        ...

    def displacing(self, displaced: tuple[Grant, ...]) -> Self:
        """Return the same, with new grants of other containers, which make way."""
        ...


_F = TypeVar("_F", bound=Found)


def making_room(demand: Demand, view: NodeView, find: Callable[[NodeView], _F]) -> _F:
    """Find a place, if need be where only containers without a request are.

    Args:
        demand: The demand.
        view: The node.
        find: Finds a place for the demand.

    Raises:
        PolicyError: There is none, or those containers have nowhere to go.
    """
    try:
        return find(view)
    except PolicyError:
        asks = demand.count or demand.fraction
        if not asks or not may_be_in_the_way(demand, view.pool_ledger):
            raise
        found = _beside(Yielding(movable_grants(view)), view, find)
        if found is None:
            raise
        return found


def nearest_place(demand: Demand, view: NodeView, find: Callable[[NodeView], _F]) -> _F:
    """Find a place as `making_room` does; for exclusive CPUs others make way as well.

    They do where there is no place without, or only one in a larger pool.

    Raises:
        PolicyError: There is none.
    """
    try:
        found = making_room(demand, view, find)
    except PolicyError:
        other = _where_others_move(demand, -1, view, find)
        if other is None:
            raise
        return other
    depth = view.tree.pools[found.pool_id].depth
    return _where_others_move(demand, depth, view, find) or found


def _where_others_move(
    demand: Demand, depth: int, view: NodeView, find: Callable[[NodeView], _F]
) -> _F | None:
    """Find a place deeper in the tree where all that share make way, if any."""
    if not could_be_nearer(demand, depth, view.pool_ledger):
        return None
    yielding = all_that_share(view)
    if yielding.is_empty:
        return None
    found = _beside(yielding, view, find)
    if found is None or view.tree.pools[found.pool_id].depth <= depth:
        return None
    return found


def _beside(
    yielding: Yielding, view: NodeView, find: Callable[[NodeView], _F]
) -> _F | None:
    """Find a place where others make way; None if that does not help."""
    bare = yielding.give_way(view)
    with suppress(PolicyError):
        found, ledger = find(bare), bare.pool_ledger
        for grant in found.grants:
            ledger = ledger.add(grant)
        displaced = yielding.settle(ledger)
        if displaced is not None:
            return found.displacing(displaced)
    return None
