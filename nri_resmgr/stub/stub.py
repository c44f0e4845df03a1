"""The sessions of a plugin, one after the other, until it is stopped."""

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
from nri_resmgr.values import ResmgrError

log = Logger(__name__)

# A restarting runtime is back in about a second; during an upgrade it takes minutes, in
# which attempts should be rare.
FIRST_DELAY: Final = 0.1  # seconds
LAST_DELAY: Final = 30.0  # seconds


class Stub:
    """Connects a plugin to its runtime and keeps it connected.

    An external plugin reconnects for ever, each time with a complete handshake. A
    plugin that the runtime launched ends with its connection: the runtime launches a
    new one when it starts again.
    """

    def __init__(
        self,
        plugin: object,
        identity: Identity,
        connector: Connector,
        options: StubOptions = StubOptions(),
    ) -> None:
        """Prepare the stub; nothing is opened before `run`.

        Args:
            plugin: An object with handlers, or a `Plugin` of functions.
            identity: Name and index to register as.
            connector: Connects to the runtime: a `SocketPath` or an `OpenSocket`.
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
        self._waiting = asyncio.Event()
        self._absent = ""

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
        """Create a stub with the identity and socket that NRI's variables name.

        The name, index and inherited descriptor of a launching runtime have priority.
        Its three variables are removed from the environment.

        Raises:
            BadIdentity: There is no valid name, index or descriptor.
            BadHandler: *plugin* handles no event.
        """
        identity = find_identity(name, index, os.environ, sys.argv[0])
        return cls(plugin, identity, find_connector(socket, os.environ), options)

    @property
    def identity(self) -> Identity:
        """The name and index to register with."""
        return self._identity

    @property
    def runtime(self) -> RuntimeInfo:
        """The runtime of the current session; empty before Configure."""
        return self._session.service.runtime if self._session else RuntimeInfo()

    @property
    def updates(self) -> UpdateSender:
        """The queue behind `schedule_updates`; it outlives sessions.

        A plugin that computes values only when they are sent adds its sources here.
        """
        return self._updates

    async def run(self) -> None:
        """Serve until `stop`, or until a launching runtime hangs up.

        Raises:
            SocketUnusable: No runtime listens at the first attempt, and the options do
                not have it waited for.
            RegistrationRefused: The runtime does not accept the name or index.
            SessionError: The handshake failed and cannot be repeated.
            Exception: What the ``configure`` handler raised in the first session; later
                ones are repeated.
        """
        load()  # before the connection: after it, a runtime waits for each answer
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
        """Wait until the plugin is registered and configured.

        Raises:
            ConnectionLost: `run` ended first.
        """
        await self._session_or_end()

    async def begun(self) -> None:
        """Wait until the plugin is registered, or waits for an absent runtime.

        Raises:
            ConnectionLost: `run` ended first.
        """
        started = asyncio.ensure_future(self.started())
        waiting = asyncio.ensure_future(self._waiting.wait())
        try:
            await asyncio.wait({started, waiting}, return_when="FIRST_COMPLETED")
            if started.done():
                started.result()
        finally:
            started.cancel()
            waiting.cancel()

    async def synchronized(self) -> None:
        """Wait until the runtime has synchronized the plugin; there is no time limit.

        Raises:
            ConnectionLost: `run`, or the session, ended first.
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
        """Call UpdateContainers.

        Calls are made one at a time, at least 50 ms apart, and never while a request
        is being handled.

        Args:
            updates: The updates, 4 MiB at most.
            evictions: Part of the schema; present runtimes ignore them.

        Returns:
            The updates that failed. Present runtimes fail the call instead.

        Raises:
            CalledFromHandler: Called while answering a request.
            UnsolicitedUpdatesUnsafe: This runtime can dead-lock on the call.
            CallFailed: An update failed; the runtime does not report which one.
            CallTimedOut: No answer in time; the updates may still be applied.
            MessageTooLarge: They exceed 4 MiB; nothing was sent.
            ConnectionLost: There is no session, or it ended.
            ReplyError: An update names no container or sets a field twice.
        """
        calls = self._current_session().calls
        if current_request() is not None:
            raise CalledFromHandler
        return await calls.update_containers(updates, evictions)

    def schedule_updates(self, updates: Iterable[ContainerUpdate]) -> None:
        """Update containers as soon as it is safe; may be called from handlers.

        The updates are sent after the current request is answered. If the runtime can
        dead-lock on that, or refuses them, they are part of the next reply that can
        carry updates. Those that are still pending when the session ends are dropped.

        Raises:
            ConnectionLost: There is no session.
            ReplyError: An update names no container or sets a field twice.
        """
        self._current_session()
        self._updates.schedule(updates)

    def _current_session(self) -> Session:
        if self._session is None:
            raise ConnectionLost("there is no session with a runtime")
        return self._session

    async def _session_or_end(self) -> Session:
        # A session may have ended again before this task runs.
        while not (self._opened.is_set() or self._ended.is_set()):
            opened = asyncio.ensure_future(self._opened.wait())
            ended = asyncio.ensure_future(self._ended.wait())
            try:
                await asyncio.wait({opened, ended}, return_when="FIRST_COMPLETED")
            finally:
                opened.cancel()
                ended.cancel()
        return self._current_session()

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
            except Exception as error:
                if not self._may_pass(error, is_first=backoff.is_fresh):
                    raise
                self._note_failure(error)
            if not self._connector.reconnects:
                return
            if session.service.is_late:
                pass  # the next one may be as late: it should not take a whole CPU
            elif session.service.synchronized.done():
                backoff.reset()
            elif session.service.mask_is_a_guess:
                self._may_guess_mask = False
            await asyncio.sleep(backoff.next())

    def _may_pass(self, error: Exception, *, is_first: bool) -> bool:
        """Return whether another session may follow a failed one."""
        if isinstance(error, SocketUnusable):
            return not is_first or self._options.waits_for_runtime
        if isinstance(error, SessionError):
            return self._connector.reconnects
        if isinstance(error, ResmgrError):
            return False  # such as a runtime that is too old
        # A fault of ours may pass, such as no memory for a message: containers run on.
        return self._connector.reconnects and not is_first

    def _note_failure(self, error: Exception) -> None:
        is_ours = not isinstance(error, ResmgrError)
        self._observer.ended(repr(error) if is_ours else str(error))
        if isinstance(error, SocketUnusable):
            self._waiting.set()
            if error.why != self._absent:
                log.info("runtime.absent", why=error.why, socket=error.path)
            self._absent = error.why
        elif isinstance(error, SessionError):
            log.warning("session.failed", why=str(error))
        else:
            log.error("session.failed", why="internal error", exc_info=error)

    async def _serve(self, session: Session) -> None:
        # Set before the handshake: its handlers may schedule updates.
        self._session = session
        try:
            await session.open(self._connector)
            log.info(
                "session.registered",
                plugin=str(self._identity),
                runtime=str(session.service.runtime),
                nri=str(session.service.runtime.level or "unknown"),
            )
            self._warn_if_never_synchronized(session)
            self._absent = ""
            self._opened.set()
            self._observer.registered(session.service.runtime)
            reason = await session.ended()
            self._observer.ended(reason or "end of file")
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
    """Pauses between attempts to connect, growing from 0.1 s to 30 s."""

    _delay: float = 0.0

    @property
    def is_fresh(self) -> bool:
        """True if there was no pause yet."""
        return self._delay == 0.0

    def reset(self) -> None:
        """Continue with the shortest pause."""
        self._delay = FIRST_DELAY / 2

    def next(self) -> float:
        """Return the next pause in seconds.

        Half of it is random, so that plugins do not reconnect all at once.
        """
        self._delay = min(max(self._delay * 2, FIRST_DELAY), LAST_DELAY)
        # Not `random`: it imports hashlib, for which a plugin whose runtime is away may
        # have no descriptor.
        share = int.from_bytes(os.urandom(2)) / 0xFFFF
        return self._delay * (0.5 + share / 2)
