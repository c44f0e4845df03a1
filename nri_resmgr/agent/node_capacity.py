"""Extended resources in the status of the Node, for documents that want them there.

Only the daemon's names are written, and only names that this agent has written are
removed: the API server keeps whose fields they are (``metadata.managedFields``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import uniform
from typing import Final

from nri_resmgr.agent.api import NODES, ApiClient, ApiObject, Ref
from nri_resmgr.agent.api.client import FIELD_MANAGER
from nri_resmgr.agent.daemon_state import DaemonState
from nri_resmgr.values import BadQuantity, parse_bytes
from nri_resmgr.values.documents import JsonObject

_OWN: Final = (FIELD_MANAGER, "Apply")
_NODE_STATUS: Final = "node-status"

CHECK: Final = 30.0
"""Seconds between two looks: a kubelet whose node was made anew sets them to zero."""

_PAUSE: Final = 2.0  # seconds between two writes


class CapacityReporter:
    """Keeps the Node's extended resources as the daemon has them.

    Args:
        api: The client.
        node: Name of the node.
        check: Seconds between two looks at the Node.
    """

    def __init__(self, api: ApiClient, node: str, check: float = CHECK) -> None:
        self._api = api
        self._node = node
        self._check = check
        self._settled: Mapping[str, int] | None = None
        self._checked = self._written = 0.0  # on the event loop's clock

    async def write(self, state: DaemonState | None) -> float:
        """Write what differs; return the seconds until it is to be called again."""
        if state is None:
            return 0.0  # what the daemon wanted last stays
        wanted = wanted_of(state)
        now = asyncio.get_running_loop().time()
        is_settled = wanted == self._settled
        if is_settled and not wanted:
            return 0.0
        if is_settled and now < self._checked + self._check:
            return self._checked + self._check - now
        if not is_settled and now < self._written + _PAUSE:
            return self._written + _PAUSE - now
        found = await self._api.get(Ref(NODES, self._node))
        present = _capacity_of(found)
        ref = Ref(NODES, self._node, subresource="status")
        if gone := sorted((own_names(found.body) - wanted.keys()) & present.keys()):
            # Explicitly: an apply leaves what a kubelet has set to zero meanwhile.
            nothing = dict.fromkeys(gone)
            await self._api.merge_patch(ref, {"status": {"capacity": nothing}})
            self._written = now
        if any(_number(present.get(name)) != count for name, count in wanted.items()):
            texts = {name: str(count) for name, count in wanted.items()}
            await self._api.apply(ref, {"status": {"capacity": texts}})
            self._written = now
        self._settled, self._checked = wanted, now
        # Not all nodes at once.
        return self._check * uniform(1, 1.5) if wanted else 0.0  # noqa: S311 - spread, no secret


def wanted_of(state: DaemonState) -> dict[str, int]:
    """Return the numbers by name of what the status of the Node should have."""
    if state.daemon.dry_run:
        return {}
    return {
        one.name: one.value
        for one in state.extended_resources
        if one.by == _NODE_STATUS
    }


def _capacity_of(node: ApiObject) -> JsonObject:
    status = node.body.get("status")
    capacity = status.get("capacity") if isinstance(status, dict) else None
    return capacity if isinstance(capacity, dict) else {}


def own_names(node: JsonObject) -> set[str]:
    """Return the extended resources in a Node that an agent has applied.

    Only what was applied: the API server (1.20) takes a merge patch as a write of other
    names, too.
    """
    metadata = node.get("metadata")
    rows = metadata.get("managedFields") if isinstance(metadata, dict) else None
    found: set[str] = set()
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and (row.get("manager"), row.get("operation")) == _OWN:
            fields = row.get("fieldsV1")
            for key in ("f:status", "f:capacity"):
                fields = fields.get(key) if isinstance(fields, dict) else None
            if isinstance(fields, dict):
                # Only names of extended resources have a domain.
                names = (key.removeprefix("f:") for key in fields)
                found.update(name for name in names if "/" in name)
    return found


def _number(text: object) -> int | None:
    try:
        return parse_bytes(text) if isinstance(text, str) else None
    except BadQuantity:
        return None
