"""Writes events on pods of what the daemon reports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from time import monotonic
from typing import Final

from nri_resmgr.agent.api import EVENTS, ApiClient, ApiError, Ref
from nri_resmgr.agent.api.errors import Conflict, ObjectMissing
from nri_resmgr.agent.daemon_state import DaemonState
from nri_resmgr.agent.pod_events import PodEvents, occurrences_of
from nri_resmgr.agent.reporter import WriteFailures
from nri_resmgr.values.documents import JsonObject

_PAUSE: Final = 1.0  # seconds between two looks for events to write


class EventWriter:
    """Takes events of the daemon, and writes those that concern pods.

    Args:
        api: The client of the API server.
        node: Name of the node.
        state: Returns the daemon's state, which has the UIDs of pods; None while the
            daemon does not answer.
    """

    def __init__(
        self, api: ApiClient, node: str, state: Callable[[], DaemonState | None]
    ) -> None:
        self._api = api
        self._state = state
        self._events = PodEvents(node, f"nri-resmgr-{node}")

    @property
    def dropped(self) -> int:
        """Number of events that were dropped, because too many others waited."""
        return self._events.dropped

    def take(self, event: JsonObject) -> None:
        """Take an event of the daemon."""
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        for one in occurrences_of(event, self._uids()):
            self._events.note(one, now.replace("+00:00", "Z"))

    async def run(self) -> None:
        """Write what is due until cancelled."""
        failures = WriteFailures()
        while True:
            await asyncio.sleep(_PAUSE)
            for write in self._events.due(monotonic()):
                ref = Ref(EVENTS, write.name, write.namespace)
                try:
                    if write.is_new:
                        await self._api.create(ref, write.body)
                    else:
                        await self._api.merge_patch(ref, write.body)
                except Conflict:
                    continue  # written before this agent started
                except ObjectMissing:
                    # Removed, or the namespace is; a later occurrence is new again.
                    self._events.failed(write)
                except ApiError as error:
                    self._events.failed(write)
                    await asyncio.sleep(failures.failed("an event", error))
                else:
                    failures.succeeded()

    def _uids(self) -> dict[str, str]:
        state = self._state()
        found = state.containers if state else ()
        return {f"{one.namespace}/{one.pod}": one.pod_uid for one in found}
