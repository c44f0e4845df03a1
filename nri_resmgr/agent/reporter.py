"""Writes what the agent reports to the API server, and only what has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from random import random, uniform
from typing import Final

from nri_resmgr.agent.api import ApiClient, ApiError, ApiObject, Ref, Resource
from nri_resmgr.agent.api.errors import Conflict, KindMissing, ObjectMissing
from nri_resmgr.agent.api.pace import Backoff
from nri_resmgr.agent.choice import ConfigObject
from nri_resmgr.agent.node_report import Facts, node_status
from nri_resmgr.agent.object_status import (
    entries_in,
    entry_of,
    is_up_to_date,
    may_write,
    own_status,
    patch_of,
)
from nri_resmgr.agent.outrun import Outrun
from nri_resmgr.agent.verdict import Verdict
from nri_resmgr.log import Logger
from nri_resmgr.values.documents import JsonObject

log = Logger(__name__)

NODE_STATUSES: Final = Resource(
    "config.nri", "v1alpha1", "noderesourcemanagers", "NodeResourceManager", False
)

_TIMES: Final = ("lastTransitionTime", "timestamp")
_COUNTS: Final = "cpus"

COUNTS_PAUSE: Final = 30.0
"""Seconds between two writes of which only the numbers of CPUs differ, and up to half
of that more, at random, so that nodes do not write together."""

_SOON: Final = 0.2  # seconds in which several changes are one write


def now_text() -> str:
    """Return the time by RFC 3339, to the second, as `metav1.Time` has it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class NodeReporter:
    """Keeps the node's `NodeResourceManager` as the agent knows the node.

    Args:
        api: The client.
        node: Name of the node.
    """

    def __init__(self, api: ApiClient, node: str) -> None:
        self._api = api
        self._node = node
        self._object: ApiObject | None = None
        self._owner = ""  # the Node's UID in it
        self._written: JsonObject = {}
        self._counted_at = 0.0

    async def write(self, facts: Facts, node_uid: str) -> float:
        """Write the status if it differs; return seconds until it is to be tried again.

        Args:
            facts: What the agent knows.
            node_uid: The Node's UID, which owns the object; empty if it is not known.
        """
        loop = asyncio.get_running_loop()
        # The Node may be known later than the object is made, and may be another one.
        if self._object is None or node_uid not in ("", self._owner):
            self._object = await self._made(node_uid)
            self._owner = node_uid
            self._written = self._object.body.get("status") or {}
        found = self._object
        status = node_status(facts, self._written, found.generation, now_text())
        if _without_times(status) == _without_times(self._written):
            return 0.0
        rest = {key: value for key, value in status.items() if key != _COUNTS}
        before = {key: one for key, one in self._written.items() if key != _COUNTS}
        if _without_times(rest) == _without_times(before):
            wait = self._counted_at + COUNTS_PAUSE - loop.time()
            if wait > 0:
                return wait + uniform(0, COUNTS_PAUSE / 2)  # noqa: S311 - spread, no secret
        try:
            ref = Ref(NODE_STATUSES, self._node, subresource="status")
            await self._api.apply(ref, {"status": status})
        except ObjectMissing:
            self._object = None
            raise
        self._written, self._counted_at = status, loop.time()
        return 0.0

    async def _made(self, node_uid: str) -> ApiObject:
        metadata: JsonObject = {}
        if node_uid:
            # Kubernetes removes the object with the node.
            owner = {
                "apiVersion": "v1",
                "kind": "Node",
                "name": self._node,
                "uid": node_uid,
            }
            metadata["ownerReferences"] = [owner]
        ref = Ref(NODE_STATUSES, self._node)
        return await self._api.apply(ref, {"metadata": metadata, "spec": {}})


class ObjectReporter:
    """Keeps the node's entry in the status of the object that configures it.

    Args:
        api: The client.
        node: Name of the node.
        own_name: Name of an object of this node alone.
        resources: The kinds of objects with a status.
        chance: Returns random numbers from 0 to 1.
    """

    def __init__(
        self,
        api: ApiClient,
        node: str,
        own_name: str,
        resources: tuple[Resource, ...],
        chance: Callable[[], float] = random,
    ) -> None:
        self._api = api
        self._node = node
        self._own_name = own_name
        self._resources = {one.kind: one for one in resources}
        self._config: ConfigObject | None = None  # the one that has our entry
        self._settled: object = None
        self._has_left = False
        self._outrun = Outrun()
        self._chance = chance

    async def write(self, facts: Facts) -> float:
        """Write the entry if it differs, and remove that in the object before.

        Returns:
            Seconds until it is to be tried again, 0 if it is not.
        """
        config, self._has_left = facts.config, False
        if self._config is not None and not _is_same(self._config, config):
            await self._patch(self._config, patch_of(self._node, None))
            self._config, self._settled = None, None
        if config is None or config.kind not in self._resources:
            return 0.0
        entry = entry_of(config, facts.verdict, now_text())
        # Also where there was no room: the entries of other nodes are not read again at
        # each change of the daemon's state.
        settled = (config.kind, config.uid, _without_times(entry))
        if entry is None or settled == self._settled:
            return 0.0
        now = asyncio.get_running_loop().time()
        if config.name != self._own_name and (rest := self._outrun.rest(now)):
            return rest
        try:
            if await self._has(config, entry, facts.verdict):
                self._config = config
        except Conflict:
            # Another node wrote at the same moment: there may be no room any more.
            return self._outrun.happened(now, self._chance())
        self._settled = settled
        self._outrun.reset()
        return 0.0

    async def leave(self, config: ConfigObject | None) -> None:
        """Remove the node's entry, once: the cluster has no Node of this name.

        Args:
            config: The object that configures the node.
        """
        config = self._config or config
        if self._has_left or config is None or config.kind not in self._resources:
            return
        try:
            found = await self._api.get(self._ref(config, ""))
        except (ObjectMissing, KindMissing):
            pass
        else:
            if self._node in entries_in(found.body.get("status")):
                await self._patch(config, patch_of(self._node, None))
        self._config, self._settled, self._has_left = None, None, True

    async def _has(
        self, config: ConfigObject, entry: JsonObject, verdict: Verdict
    ) -> bool:
        """Write the entry unless it is there; return whether it is."""
        try:
            found = await self._api.get(self._ref(config, ""))
        except (ObjectMissing, KindMissing):
            return False  # it is gone, and its status with it
        status = found.body.get("status")
        present = entries_in(status)
        if is_up_to_date(present.get(self._node), entry):
            return True
        if config.name == self._own_name:
            own = own_status(config, verdict, status, entry["timestamp"])
            return await self._patch(config, patch_of(self._node, entry, own))
        patch = patch_of(self._node, entry)
        if self._node in present:
            return await self._patch(config, patch)
        if not may_write(present, self._node):
            return False
        # One more entry, in the object as it was read: others may do the same now.
        patch["metadata"] = {"resourceVersion": found.version}
        return await self._patch(config, patch)

    async def _patch(self, config: ConfigObject, patch: JsonObject) -> bool:
        """Change the status of an object; return whether it exists."""
        try:
            await self._api.merge_patch(self._ref(config, "status"), patch)
        except (ObjectMissing, KindMissing):
            return False
        return True

    def _ref(self, config: ConfigObject, subresource: str) -> Ref:
        resource = self._resources[config.kind]
        return Ref(resource, config.name, config.namespace, subresource)


async def keep_written(
    api: ApiClient,
    what: str,
    write: Callable[[], Awaitable[float]],
    changed: asyncio.Event,
) -> None:
    """Write after each change, and again after a failure, until cancelled.

    Args:
        api: The client, for the pause after a failure.
        what: What is written, for the log.
        write: Writes what differs; returns the seconds until it has to be called again
            though nothing changes, 0 if it has not.
        changed: Set by each change.
    """
    loop, failures = asyncio.get_running_loop(), WriteFailures()
    while True:
        await changed.wait()
        await asyncio.sleep(_SOON)
        changed.clear()
        try:
            if again := await write():
                loop.call_later(again, changed.set)
            failures.succeeded()
        except ApiError as error:
            await api.pause(error, failures.failed(what, error))
            changed.set()


class WriteFailures:
    """Logs failed writes, and returns the pauses after them.

    Attributes:
        why: The last failure; empty after a success.
    """

    def __init__(self) -> None:
        self._backoff = Backoff()
        self.why = ""

    def succeeded(self) -> None:
        """Begin again with short pauses, and log the next failure whatever it is."""
        self._backoff.reset()
        self.why = ""

    def failed(self, what: str, error: ApiError) -> float:
        """Return the pause; log an error that differs from the one before."""
        if str(error) != self.why:
            self.why = str(error)
            log.warning("agent.not-written", what=what, why=self.why)
        return self._backoff.next(random(), error.retry_after)  # noqa: S311 - spread, no secret


def _is_same(one: ConfigObject, other: ConfigObject | None) -> bool:
    return other is not None and (one.kind, one.uid) == (other.kind, other.uid)


def _without_times(status: object) -> object:
    match status:
        case dict():
            return {
                key: _without_times(one)
                for key, one in status.items()
                if key not in _TIMES
            }
        case list():
            return [_without_times(one) for one in status]
    return status
