"""A plugin's life: session after session, until it is told to stop."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable
from typing import Final

import attrs

from nri_proto.levels import SPLIT_SYNC
from nri_resmgr.log import Logger, load
from nri_resmgr.stub.errors import (
    CalledFromHandler,
    ConnectionLost,
    SessionError,
    SocketUnusable,
)
from nri_resmgr.stub.handlers import Handlers
from nri_resmgr.stub.identity import Identity, find_identity
from nri_resmgr.stub.model import ContainerEviction
from nri_resmgr.stub.observer import Observer
from nri_resmgr.stub.request import current_request
from nri_resmgr.stub.runtime_info import RuntimeInfo
from nri_resmgr.stub.session import Session, StubOptions
from nri_resmgr.stub.transport import Connector, find_connector
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.stub.update_sender import UpdateSender

log = Logger(__name__)

# A restarting runtime is back in about a second; one that is being upgraded
# should not be hammered.
FIRST_DELAY: Final = 0.1  # seconds
LAST_DELAY: Final = 30.0  # seconds


class Stub:
    """Connects a plugin to its runtime and keeps it connected.

    External plugins reconnect for ever, each time with a whole new handshake. One
    that the runtime launched ends with its connection: the runtime launches a new
    one when it starts again.
    """

    def __init__(
        self,
        plugin: object,
        identity: Identity,
        connector: Connector,
        options: StubOptions = StubOptions(),
    ) -> None:
        """Prepare; nothing is opened before `run`.

        Args:
            plugin: An object with handlers, or a `Plugin` of functions.
            identity: Name and index to register as.
            connector: The way to the runtime.
            options: Time limits and choices.

        Raises:
            BadHandler: *plugin* handles no event.
        """
        self._handlers = Handlers.of(plugin)
        self._identity = identity
        self._connector = connector
        self._options = options
        self._observer = options.observer or Observer()
        self._session: Session | None = None
        self._updates = UpdateSender()
        self._may_guess_mask = connector.reconnects
        self._opened = asyncio.Event()
        self._stopping = asyncio.Event()
        self._ended = asyncio.Event()

    @classmethod
    def from_environment(
        cls,
        plugin: object,
        *,
        name: str | None = None,
        index: str | None = None,
        socket: str | None = None,
        options: StubOptions = StubOptions(),
    ) -> Stub:
        """Find out who we are and where the runtime is, as NRI has it.

        The descriptor of a launching runtime goes before *socket*; its three
        variables are dropped from the environment.

        Raises:
            BadIdentity: There is no legal name, index or descriptor.
            BadHandler: *plugin* handles no event.
        """
        identity = find_identity(name, index, os.environ, sys.argv[0])
        return cls(plugin, identity, find_connector(socket, os.environ), options)

    @property
    def identity(self) -> Identity:
        """Who we register as."""
        return self._identity

    @property
    def runtime(self) -> RuntimeInfo:
        """The runtime of the present session; empty before Configure."""
        return self._session.service.runtime if self._session else RuntimeInfo()

    @property
    def updates(self) -> UpdateSender:
        """The queue behind `schedule_updates`; it outlives sessions.

        A plugin that computes its values when they are sent adds its sources here.
        """
        return self._updates

    async def run(self) -> None:
        """Serve until `stop`, or until a launching runtime hangs up.

        Raises:
            SocketUnusable: There was no runtime to begin with.
            RegistrationRefused: The runtime does not like our name or index.
            SessionError: The handshake failed and cannot be repeated.
            Exception: What the ``configure`` handler raised.
        """
        load()  # now: from the connection on, a runtime waits for each answer
        serving = asyncio.create_task(self._serve_sessions())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({serving, stopping}, return_when="FIRST_COMPLETED")
            if not serving.done() and self._session is not None:
                await self._session.close()
        finally:
            stopping.cancel()
            serving.cancel()
            await asyncio.wait({serving})
            self._session = None
            self._ended.set()
        if not serving.cancelled():
            serving.result()

    def stop(self) -> None:
        """End `run`: running handlers finish, then the connection is closed."""
        self._stopping.set()

    async def started(self) -> None:
        """Wait until registered and configured.

        Raises:
            ConnectionLost: `run` ended before.
        """
        await self._session_or_end()

    async def synchronized(self) -> None:
        """Wait until the runtime has told what runs; takes as long as it takes.

        Raises:
            ConnectionLost: `run`, or the session, ended before.
        """
        session = await self._session_or_end()
        await session.reached(session.service.synchronized)

    async def closed(self) -> None:
        """Wait until `run` has ended."""
        await self._ended.wait()

    async def update_containers(
        self,
        updates: Iterable[ContainerUpdate],
        evictions: Iterable[ContainerEviction] = (),
    ) -> tuple[ContainerUpdate, ...]:
        """Ask the runtime to update containers, now.

        Calls go out one at a time, 50 ms apart, and never while a request is
        being handled.

        Args:
            updates: At most 4 MiB of them.
            evictions: In the schema; no runtime of today acts on them.

        Returns:
            The updates that failed. Runtimes of today raise instead.

        Raises:
            CalledFromHandler: Called while answering a request.
            UnsolicitedUpdatesUnsafe: This runtime can dead-lock on the call.
            CallFailed: Some update failed; which one is not told.
            CallTimedOut: No answer in time; the updates may still happen.
            MessageTooLarge: They are over 4 MiB; nothing was sent.
            ConnectionLost: There is no session, or it ended.
            ReplyError: An update names no container or sets a field twice.
        """
        calls = self._present().calls
        if current_request() is not None:
            raise CalledFromHandler
        return await calls.update_containers(updates, evictions)

    def schedule_updates(self, updates: Iterable[ContainerUpdate]) -> None:
        """Update containers as soon as it is safe; may be called from handlers.

        They go out after the current request is answered. Where the runtime can
        dead-lock on that, or refuses them, the next reply that can carry updates
        carries them. Those that still wait when the session ends are dropped.

        Raises:
            ConnectionLost: There is no session.
            ReplyError: An update names no container or sets a field twice.
        """
        self._present()
        self._updates.schedule(updates)

    def _present(self) -> Session:
        if self._session is None:
            raise ConnectionLost("there is no session with a runtime")
        return self._session

    async def _session_or_end(self) -> Session:
        # A session may have ended again before we get to see it.
        while not (self._opened.is_set() or self._ended.is_set()):
            opened = asyncio.ensure_future(self._opened.wait())
            ended = asyncio.ensure_future(self._ended.wait())
            try:
                await asyncio.wait({opened, ended}, return_when="FIRST_COMPLETED")
            finally:
                opened.cancel()
                ended.cancel()
        return self._present()

    async def _serve_sessions(self) -> None:
        backoff = Backoff()
        while True:
            session = Session(
                self._handlers,
                self._identity,
                self._options,
                self._updates,
                may_guess_mask=self._may_guess_mask,
            )
            try:
                await self._serve(session)
            except SocketUnusable as error:
                if backoff.is_fresh:
                    raise  # never seen a runtime: say so instead of waiting
                self._observer.lost(str(error))
                log.info("runtime.absent", why=error.why, socket=error.path)
            except SessionError as error:
                if not self._connector.reconnects:
                    raise
                self._observer.lost(str(error))
                log.warning("session.failed", why=str(error))
            if not self._connector.reconnects:
                return
            if session.service.synchronized.done():
                backoff.reset()
            elif session.service.mask_is_a_guess:
                self._may_guess_mask = False
            await asyncio.sleep(backoff.next())

    async def _serve(self, session: Session) -> None:
        # Set before the handshake: its handlers may schedule updates.
        self._session = session
        try:
            await session.open(self._connector)
            log.info(
                "plugin.registered",
                plugin=str(self._identity),
                runtime=str(session.service.runtime),
                nri=str(session.service.runtime.level or "unknown"),
            )
            self._warn_if_never_synchronized(session)
            self._opened.set()
            self._observer.registered(session.service.runtime)
            reason = await session.ended()
            self._observer.lost(reason or "end of file")
            if not self._stopping.is_set():
                log.warning("session.ended", why=reason or "end of file")
        finally:
            self._opened.clear()
            self._session = None

    def _warn_if_never_synchronized(self, session: Session) -> None:
        level = session.service.runtime.level
        if not self._connector.reconnects and level and level < SPLIT_SYNC:
            log.warning(
                "runtime.no-synchronize",
                nri=str(level),
                why="it never synchronizes plugins that it launches",
                instead="run the plugin as a service of its own",
            )


@attrs.define(eq=False, repr=False)
class Backoff:
    """Pauses that grow from 0.1 s to 30 s."""

    _delay: float = 0.0

    @property
    def is_fresh(self) -> bool:
        """Whether nothing was waited for yet."""
        return self._delay == 0.0

    def reset(self) -> None:
        """Begin again with the shortest pause."""
        self._delay = FIRST_DELAY / 2

    def next(self) -> float:
        """Return the next pause; half is at random: plugins must not come as one."""
        import random  # late: it imports hashes, and most plugins never wait

        self._delay = min(max(self._delay * 2, FIRST_DELAY), LAST_DELAY)
        return self._delay * random.uniform(0.5, 1.0)  # noqa: S311 - jitter is no secret
