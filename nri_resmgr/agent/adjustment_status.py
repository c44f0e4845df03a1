"""The node's entries in the status of adjustments, written if they differ.

The custom resource and its status are those of CRI Resource Manager, which has no
status subresource: a status is a change of the object as any other, and all nodes see
it. So entries are those of few nodes, as in an object that configures many of them; the
node's own `NodeResourceManager` has the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from random import random
from typing import Final

import msgspec

from nri_resmgr.agent.adjustments import ADJUSTMENTS
from nri_resmgr.agent.api import ApiClient, ApiError, ApiObject, Ref
from nri_resmgr.agent.api.errors import Conflict, KindMissing, ObjectMissing
from nri_resmgr.agent.daemon_state import IGNORED, JUDGED, JudgedAdjustment
from nri_resmgr.agent.object_status import entries_in, may_write
from nri_resmgr.agent.outrun import Outrun
from nri_resmgr.values.documents import JsonObject

# An API server brought the writes of 300 nodes after more than a minute. Until then the
# watch brings what other nodes wrote before.
_LAG: Final = 300.0  # seconds


class _Write(msgspec.Struct, frozen=True):
    """What was written last; the watch may not have brought it until then."""

    patch: JsonObject
    until: float  # monotonic


def patch_of(
    found: ApiObject, judged: JudgedAdjustment, node: str
) -> JsonObject | None:
    """Return the merge patch of an adjustment's status; None if it is right.

    Args:
        found: The adjustment as it was seen last.
        judged: The daemon's verdict on it.
        node: Name of the node.
    """
    present = entries_in(found.body.get("status")).get(node)
    if judged.verdict == IGNORED:
        return None if present is None else {"status": {"nodes": {node: None}}}
    if judged.verdict not in JUDGED:
        return None  # of a daemon of another version: it may mean anything
    errors = dict(judged.errors)
    found_errors = present.get("errors") if isinstance(present, Mapping) else None
    if found_errors == errors:
        return None
    # A merge patch adds keys: those that are gone have to be removed by name.
    before = found_errors if isinstance(found_errors, Mapping) else {}
    gone = dict.fromkeys(before.keys() - errors.keys())
    return {"status": {"nodes": {node: {"errors": {**gone, **errors}}}}}


class AdjustmentReporter:
    """Keeps the node's entries in the status of adjustments.

    Args:
        api: The client.
        node: Name of the node.
        chance: Returns random numbers from 0 to 1.
        lag: Seconds for which the watch may bring versions from before a write.
    """

    def __init__(
        self,
        api: ApiClient,
        node: str,
        chance: Callable[[], float] = random,
        lag: float = _LAG,
    ) -> None:
        self._api = api
        self._node = node
        self._chance = chance
        self._lag = lag
        # All by UID. The version that another node's write has replaced already.
        self._outdated: dict[str, str] = {}
        self._written: dict[str, _Write] = {}
        # Specification and verdict for which there was no room. They are not tried
        # again when there is: all other nodes would do the same.
        self._without_room: dict[str, object] = {}
        self._outrun = Outrun()

    async def write(
        self, found: Mapping[str, ApiObject], judged: Iterable[JudgedAdjustment]
    ) -> float:
        """Write the entry in each adjustment whose entry differs.

        Args:
            found: The adjustments as they were seen last, by name.
            judged: The daemon's verdicts.

        Returns:
            Seconds until it is to be tried again, 0 if it is not.

        Raises:
            ApiError: One could not be written; the others were tried.
        """
        self._keep_only({one.uid for one in found.values()})
        failure: ApiError | None = None
        pause = 0.0
        for one in judged:
            adjustment = found.get(one.object.name)
            if adjustment is None or adjustment.uid != one.object.uid:
                continue
            try:
                pause = max(pause, await self._write(adjustment, one))
            except (ObjectMissing, KindMissing):
                pass  # it is gone, and its status with it
            except ApiError as error:
                failure = error
            await asyncio.sleep(0)
        if failure is not None:
            raise failure
        return pause

    async def leave(self, found: Mapping[str, ApiObject]) -> None:
        """Remove the node's entry in each: the cluster has no Node of this name.

        Args:
            found: The adjustments as they were seen last, by name.
        """
        patch: JsonObject = {"status": {"nodes": {self._node: None}}}
        for one in found.values():
            # Also where the watch has not brought what was written.
            was_written = self._written.pop(one.uid, None) is not None
            if was_written or self._node in entries_in(one.body.get("status")):
                with contextlib.suppress(ObjectMissing, KindMissing):
                    ref = Ref(ADJUSTMENTS, one.name, one.namespace)
                    await self._api.merge_patch(ref, patch)

    async def _write(self, found: ApiObject, judged: JudgedAdjustment) -> float:
        patch = patch_of(found, judged, self._node)
        if patch is None or self._outdated.get(found.uid) == found.version:
            return 0.0
        now = asyncio.get_running_loop().time()
        if rest := self._rest_of_lag(found.uid, patch, now):
            return rest
        is_new = self._node not in entries_in(found.body.get("status"))
        pause = self._rest_of_new(found, judged, now) if is_new else None
        if pause is not None:
            return pause
        return await self._send(found, patch, now, is_new=is_new)

    def _rest_of_new(
        self, found: ApiObject, judged: JudgedAdjustment, now: float
    ) -> float | None:
        """Return for how long no entry is added, 0 where there is no room for it."""
        wanted = found.body.get("spec"), judged
        if self._without_room.get(found.uid) == wanted:
            return 0.0
        if not may_write(entries_in(found.body.get("status")), self._node):
            self._without_room[found.uid] = wanted
            return 0.0
        return self._outrun.rest(now) or None

    async def _send(
        self, found: ApiObject, patch: JsonObject, now: float, *, is_new: bool
    ) -> float:
        # A new entry, in the object as it was seen: others may add theirs now.
        condition = {"metadata": {"resourceVersion": found.version}} if is_new else {}
        ref = Ref(ADJUSTMENTS, found.name, found.namespace)
        try:
            await self._api.merge_patch(ref, {**patch, **condition})
        except Conflict:
            self._outdated[found.uid] = found.version
            return self._outrun.happened(now, self._chance())
        self._written[found.uid] = _Write(patch, now + self._lag)
        self._without_room.pop(found.uid, None)
        if is_new:
            self._outrun.reset()
        return 0.0

    def _rest_of_lag(self, uid: str, patch: JsonObject, now: float) -> float:
        """Return the seconds for which a write is not repeated; 0 for another one."""
        last = self._written.get(uid)
        if last is None or last.patch != patch:
            return 0.0
        return max(0.0, last.until - now)

    def _keep_only(self, uids: set[str]) -> None:
        for by_uid in (self._outdated, self._written, self._without_room):
            for uid in by_uid.keys() - uids:
                by_uid.pop(uid)
