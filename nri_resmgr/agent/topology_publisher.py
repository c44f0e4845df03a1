"""Publishes the node's `NodeResourceTopology`, and only what has changed.

By server-side apply: the API server knows which manager each field belongs to, and
refuses to have us overwrite those of another one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from random import random
from time import monotonic
from typing import Final

from nri_resmgr.agent.api import ApiClient, ApiError, ApiObject, Ref
from nri_resmgr.agent.api.client import FIELD_MANAGER
from nri_resmgr.agent.api.errors import (
    Conflict,
    Forbidden,
    KindMissing,
    ObjectMissing,
)
from nri_resmgr.agent.node_topology import NODE_TOPOLOGIES, topology_of
from nri_resmgr.agent.publication import PUBLISHED, Publication
from nri_resmgr.agent.publishing_pace import PublishingPace, PublishingSchedule
from nri_resmgr.agent.reporter import WriteFailures
from nri_resmgr.agent.zones import Zones
from nri_resmgr.log import Logger
from nri_resmgr.values.documents import JsonObject

log = Logger(__name__)

_ZONES: Final = "f:zones"


class TopologyPublisher:
    """Keeps the object of a node as the daemon says.

    Args:
        api: The client.
        node: Name of the node, and of the object.
        zones: Asks the daemon; None without an answer.
        owner: Returns the Node's UID, which owns the object; empty if it is not known.
        changed: Called when `publication` has changed.

    Attributes:
        pace: When a change is published.
        publication: None where nothing is to be published.
    """

    def __init__(
        self,
        api: ApiClient,
        node: str,
        zones: Callable[[], Awaitable[Zones | None]],
        owner: Callable[[], str],
        changed: Callable[[], None],
    ) -> None:
        self._api = api
        self._ref = Ref(NODE_TOPOLOGIES, node)
        self._zones = zones
        self._owner = owner
        self._changed = changed
        self._noted = asyncio.Event()
        self._sent: tuple[JsonObject, bool] | None = None  # and whether by force
        self._is_withdrawn = False
        self.pace = PublishingPace()
        self.publication: Publication | None = None

    def note_change(self) -> None:
        """Note that the daemon may say something else."""
        self._noted.set()

    async def run(self) -> None:
        """Publish until cancelled."""
        failures = WriteFailures()
        self._sent, self._is_withdrawn = None, False  # after a failure
        schedule = PublishingSchedule(self.pace, monotonic(), _chance())
        while True:
            await self._rest(schedule)
            self._noted.clear()
            is_again = schedule.looks(monotonic())
            try:
                has_written = await self._keep(is_again=is_again)
            except ApiError as error:
                pause = failures.failed("the node's topology", error)
                await self._api.pause(error, pause)
                schedule.changed(monotonic(), _chance())
            else:
                failures.succeeded()
                schedule.looked(monotonic(), _chance(), has_written=has_written)

    async def _rest(self, schedule: PublishingSchedule) -> None:
        """Wait until the daemon is to be asked, by the changes that are noted."""
        while (seconds := schedule.rest(monotonic())) > 0:
            if await _set_within(self._noted, seconds):
                self._noted.clear()
                schedule.changed(monotonic(), _chance())

    async def _keep(self, *, is_again: bool) -> bool:
        """Apply the object if it differs; return whether it was sent."""
        zones = await self._zones()
        if zones is None or (zones.publish and not zones.synchronized):
            return False  # what was published is the last that is known
        if zones.publish is None:
            await self._withdraw()
            return False
        self._is_withdrawn = False
        body, force = self._body(zones), zones.publish.force
        if (body, force) == self._sent and not is_again:
            return False
        try:
            await self._api.apply(self._ref, body, force=force)
        except Conflict as error:
            # Not tried again until it changes, or after a while.
            self._note(Publication(False, "OtherManager", _of_conflict(error)))
            self._sent = body, force
            return True
        except ApiError as error:
            self._note(Publication(False, _reason_of(error), str(error)))
            raise
        self._sent = body, force
        self._note(PUBLISHED)
        return True

    def _body(self, zones: Zones) -> JsonObject:
        found = topology_of(zones)
        if uid := self._owner():
            # Kubernetes removes the object with the node.
            owner = {
                "apiVersion": "v1",
                "kind": "Node",
                "name": self._ref.name,
                "uid": uid,
            }
            found["metadata"] = {"ownerReferences": [owner]}
        return found

    async def _withdraw(self) -> None:
        """Delete an object of ours, once: a scheduler would believe it for ever."""
        self._note(None)
        if self._is_withdrawn:
            return
        # Most nodes never publish, and many clusters have neither the kind nor the
        # right.
        with contextlib.suppress(ObjectMissing, KindMissing, Forbidden, Conflict):
            found = await self._api.get(self._ref)
            if _is_ours(found):
                await self._api.delete(self._ref, found)
                log.info("agent.topology-withdrawn", node=self._ref.name)
        self._is_withdrawn, self._sent = True, None

    def _note(self, publication: Publication | None) -> None:
        if publication == self.publication:
            return
        self.publication = publication
        if publication is not None and not publication.is_published:
            log.warning("agent.topology-not-published", why=publication.why)
        self._changed()


def _is_ours(found: ApiObject) -> bool:
    """Return whether the zones of an object were written by us alone."""
    managers = set(_managers_of_zones(found.body))
    return managers == {FIELD_MANAGER}


def _managers_of_zones(body: Mapping[str, object]) -> Iterator[str]:
    metadata = body.get("metadata")
    rows = metadata.get("managedFields") if isinstance(metadata, Mapping) else None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping) and _ZONES in (row.get("fieldsV1") or ()):
            yield str(row.get("manager", ""))


def _of_conflict(error: Conflict) -> str:
    return (
        f"the object is another manager's: {error.why}; remove that one, or set "
        "agent.nodeResourceTopologyForce"
    )


def _reason_of(error: ApiError) -> str:
    match error:
        case KindMissing():
            return "NoDefinition"
        case Forbidden():
            return "Forbidden"
    return "NotWritten"


def _chance() -> float:
    return random()  # noqa: S311 - spread, no secret


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
