"""Calls of UpdateContainers: where they are safe, one at a time."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Iterable
from typing import Final, cast

import attrs

from nri_proto import RUNTIME_METHODS, NriLevel, nri_pb2
from nri_proto.levels import SAFE_UPDATES
from nri_resmgr.stub.convert import from_message, to_message
from nri_resmgr.stub.errors import UnsolicitedUpdatesUnsafe
from nri_resmgr.stub.link import Link
from nri_resmgr.stub.model import ContainerEviction
from nri_resmgr.stub.replies import synchronize_response
from nri_resmgr.stub.runner import Runner
from nri_resmgr.stub.update import ContainerUpdate

# Go's stub waits for ever. The runtime may be busy with other plugins' requests.
CALL_TIMEOUT: Final = 10.0  # seconds

# The dead-lock of NRI <= 0.12.0 grows with the rate of calls, and every call
# takes the runtime's one lock from the node's container starts.
MIN_INTERVAL: Final = 0.05  # seconds

_UPDATE_CONTAINERS: Final = RUNTIME_METHODS["UpdateContainers"]


class UnsolicitedUpdates(enum.StrEnum):
    """When updates may go to the runtime without a request of its own."""

    AUTO = "auto"  # where its NRI cannot dead-lock on them
    ALWAYS = "always"
    NEVER = "never"


@attrs.define(eq=False, repr=False)
class UpdateCalls:
    """Calls UpdateContainers in one session, never while a request is handled.

    Attributes:
        level: The runtime's, once Configure has come.
    """

    link: Link
    runner: Runner
    policy: UnsolicitedUpdates = UnsolicitedUpdates.AUTO
    call_timeout: float = CALL_TIMEOUT
    level: NriLevel | None = None
    _turn: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _last: float = attrs.field(default=float("-inf"), init=False)

    async def update_containers(
        self,
        updates: Iterable[ContainerUpdate],
        evictions: Iterable[ContainerEviction] = (),
    ) -> tuple[ContainerUpdate, ...]:
        """Call UpdateContainers when it is its turn; see `Stub.update_containers`."""
        if not self._may_call():
            raise UnsolicitedUpdatesUnsafe(self.level)
        checked = synchronize_response(updates).update
        request = nri_pb2.UpdateContainersRequest(
            update=checked, evict=[to_message(eviction) for eviction in evictions]
        )
        loop = asyncio.get_running_loop()
        async with self._turn:
            await asyncio.sleep(max(0.0, self._last + MIN_INTERVAL - loop.time()))
            await self.runner.idle.wait()
            self._last = loop.time()
            reply = await self.link.call(_UPDATE_CONTAINERS, request, self.call_timeout)
        failed = cast("nri_pb2.UpdateContainersResponse", reply).failed
        return tuple(from_message(update) for update in failed)

    def _may_call(self) -> bool:
        match self.policy:
            case UnsolicitedUpdates.ALWAYS:
                return True
            case UnsolicitedUpdates.NEVER:
                return False
            case UnsolicitedUpdates.AUTO:
                return self.level is not None and self.level >= SAFE_UPDATES
