"""When a node reports on adjustments: pure, time is an argument.

All nodes see each change of an adjustment at once, and act at once; but reports of all
of them in the same second would be a burst that grows with the cluster, so each node
waits for a random time before it reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from nri_resmgr.agent.api import ApiObject
from nri_resmgr.agent.object_status import entries_in
from nri_resmgr.agent.report_pace import EACH, LONGEST

_ALL: Final = "*"


class AdjustmentPace:
    """Says for how long reports on adjustments have to wait.

    Args:
        node: Name of the node.
    """

    def __init__(self, node: str) -> None:
        self._node = node
        self._seen: Mapping[str, ApiObject] = {}  # by UID
        self._spread = 0.0
        self._until = 0.0

    def seen(self, found: Iterable[ApiObject], at: float, chance: float) -> None:
        """Note the adjustments there are, which may be the same as before.

        Args:
            found: All adjustments.
            at: When they were seen, in monotonic seconds.
            chance: A random number from 0 to 1.
        """
        before, now = self._seen, {one.uid: one for one in found}
        self._seen = now
        spreads = (
            spread_of(self._node, before.get(uid), now.get(uid))
            for uid in before.keys() | now.keys()
        )
        spread = max(spreads, default=0.0)
        # A wait that goes on stays as it is, or a storm of changes would prolong it for
        # ever: unless it is that of a change which fewer nodes report.
        if self.rest(at) and spread <= self._spread:
            return
        self._spread = spread
        self._until = at + chance * spread

    def rest(self, at: float) -> float:
        """Return the seconds for which nothing is to be reported yet."""
        return max(0.0, self._until - at)


def spread_of(node: str, before: ApiObject | None, after: ApiObject | None) -> float:
    """Return the seconds over which nodes spread their reports of a change.

    Args:
        node: Name of the node.
        before: The adjustment; None for a new one.
        after: The same; None for one that is gone.
    """
    if _spec(before) == _spec(after):
        return 0.0  # only its status differs, which nodes write
    former, present = _nodes_of(before), _nodes_of(after)
    named = former | present
    if not any(one.endswith(_ALL) for one in named):
        return min(LONGEST, EACH * len(named - {node}))
    last = after or before
    is_for_the_same = before is None or present in (former, frozenset())
    count = len(entries_in(last.body.get("status"))) if last else 0
    # There may be any number of nodes that it is for.
    return min(LONGEST, EACH * count) if is_for_the_same and count else LONGEST


def _spec(found: ApiObject | None) -> object:
    return found.body.get("spec", {}) if found else None


def _nodes_of(found: ApiObject | None) -> frozenset[str]:
    """Return the names and beginnings of names that an adjustment is for."""
    if found is None:
        return frozenset()
    spec = _spec(found)
    scopes = spec.get("scope") if isinstance(spec, Mapping) else None
    if not isinstance(scopes, list):
        return frozenset({_ALL})
    names: set[str] = set()
    for scope in scopes:
        nodes = scope.get("nodes") if isinstance(scope, Mapping) else None
        names |= set(map(str, nodes)) if isinstance(nodes, list) and nodes else {_ALL}
    return frozenset(names)
