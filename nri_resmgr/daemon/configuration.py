"""The daemon's configuration documents, from files, the cache and the runtime."""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from nri_resmgr.app.background.threads import found_by, in_thread
from nri_resmgr.app.configuration.acceptance import Rules, keep_nothing
from nri_resmgr.app.configuration.status import BUILT_IN, Document
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.config import PolicyConfig
from nri_resmgr.daemon.documents import Documents
from nri_resmgr.host.file_watch import WatchedFile
from nri_resmgr.log import Logger
from nri_resmgr.values import InputError, ResmgrError

log = Logger(__name__)

Make: TypeAlias = Callable[[PolicyConfig, Document, Rules], ResourcePolicy]

POLL_INTERVAL: Final = 1.0  # seconds

# A file is read once it has not changed for the first time; after the second one even
# if it still changes.
_SETTLING: Final = 0.1  # seconds
_PATIENCE: Final = 2.0  # seconds


@dataclass(eq=False)
class EmptyFile(InputError):
    """A configuration file has become empty."""

    path: str

    def __str__(self) -> str:
        return f"{self.path} is empty; it may be being written"


class NothingToReload(InputError):
    """The configuration in force was not read from a file."""

    def __str__(self) -> str:
        return "the configuration in force was not read from a file"


class DaemonConfiguration:
    """Reads documents from files, and offers them to the `ActiveConfiguration`.

    The runtime's text replaces all but ``--config-file`` and the cluster's document.

    Args:
        options: The command line.
        documents: The documents at the start.
        make: Makes the policy from a configuration, its document, and the rules for
            later ones; raises where the configuration does not fit.
        launched: Whether the runtime started this process; see `Rules`.

    Attributes:
        policy: The policy, made from the first usable document.
        cluster: The documents of the cluster; None without ``--spool``.

    Raises:
        InputError: A file of the command line has a mistake.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        documents: Documents,
        make: Make,
        *,
        launched: bool,
    ) -> None:
        self._documents = documents
        self._file, self._source = documents.file, documents.source
        rules = Rules(
            launched=launched,
            may_switch=not options.disable_policy_switch,
            keep=documents.cache.keep if documents.cache else keep_nothing,
            lower=self._lower,
        )
        self._text: str | None = None  # of the file, when it was last read
        self._reading = asyncio.Lock()
        self._asked = asyncio.Event()
        self.policy = documents.first(
            lambda document, config: make(config, document, rules)
        )
        self._configuration = self.policy.configuration
        self.cluster = documents.cluster
        first = self._configuration.document
        is_new = first.source.is_external and not first.cached
        if documents.cache is not None and is_new:
            # The folder may be lost by the next start.
            documents.cache.keep(first)
        if self.cluster is not None:
            adjustments = self.policy.specs.adjustments
            adjustments.begin(self.cluster.first_adjustments())
        for rejected, error in documents.rejected:
            self._configuration.reject(rejected, error)

    async def reload(self, *, force: bool = False) -> None:
        """Read the file in force, or the spool folder, and put it in force.

        Args:
            force: Whether it may take exclusive CPUs from running containers.

        Raises:
            NothingToReload: There is no such file.
            InputError: It is unreadable or has a mistake; nothing has changed.
        """
        if self.cluster is not None and self.cluster.has_configuration:
            await self.cluster.reload(self._configuration, force=force)
        elif (file := self._watched()) is not None:
            await self._read_again(file, again=True, force=force)
        else:
            raise NothingToReload

    def ask_to_reload(self) -> None:
        """Request a reload by `follow`; for signal handlers."""
        self._asked.set()

    async def follow(self, interval: float = POLL_INTERVAL) -> None:
        """Put changes of the file in force, and reload it on SIGHUP.

        Never returns; call it again after an exception.
        """
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self.ask_to_reload)
        source, kind = str(self._configuration.document), self.policy.config.kind
        log.info("configuration.in-force", source=source, kind=kind)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._obey_signals())
            if self._file is not None:
                group.create_task(self._watch(self._file, interval))

    async def follow_cluster(self, is_ready: Callable[[], bool]) -> None:
        """Put changes of the spool folder in force; see `ClusterDocuments.follow`."""
        if self.cluster is not None:
            await self.cluster.follow(self._configuration, self.policy, is_ready)

    async def follow_cache(self) -> None:
        """Write accepted documents to the cache; see `ConfigurationCache.run`."""
        if (cache := self._documents.cache) is not None:
            await cache.run()

    def close(self) -> None:
        """Write a document that is yet to be cached."""
        if (cache := self._documents.cache) is not None:
            cache.close()

    def _lower(self) -> Iterator[Document]:
        try:
            yield from self._documents.of_file()
        except InputError as error:
            self._reject(error)
        yield BUILT_IN

    async def _obey_signals(self) -> None:
        while True:
            await self._asked.wait()
            self._asked.clear()  # one reload serves several signals
            try:
                await self.reload()
            except NothingToReload as error:
                log.warning("configuration.not-reloaded", why=str(error))
            except ResmgrError:
                continue  # noted and logged by `reject`
            except BaseException:
                self._asked.set()  # for the next `follow`
                raise

    async def _watch(self, file: WatchedFile, interval: float) -> None:
        def changed() -> bool | None:
            return (self._watched() is file and file.has_changed()) or None

        while await found_by(changed, interval):
            await _settled(file)
            with suppress(ResmgrError):  # noted and logged by `reject`
                await self._read_again(file)

    def _watched(self) -> WatchedFile | None:
        present = self._configuration.document.source
        return None if present.overrides(self._source) else self._file

    async def _read_again(
        self, file: WatchedFile, *, again: bool = False, force: bool = False
    ) -> None:
        async with self._reading:
            before, self._text = self._text, None
            try:
                text = await in_thread(file.read)
                if not text.strip():
                    raise EmptyFile(file.path)
            except InputError as error:
                self._reject(error)
                raise
            if again or text != before:
                document = Document(text, self._source, file.path)
                try:
                    self._configuration.offer(document, again=again, force=force)
                except ResmgrError:
                    self._text = text
                    raise
                except BaseException:
                    file.forget()  # a fault of ours, so it is offered again
                    raise
            self._text = text

    def _reject(self, error: InputError) -> None:
        path = self._file.path if self._file else ""
        self._configuration.reject(Document("", self._source, path), error)


async def _settled(file: WatchedFile) -> None:
    """Wait until the file does not change any more, for a limited time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _PATIENCE
    before = None
    while before != (now := await in_thread(file.signature)):
        if loop.time() > deadline:
            return
        before = now
        await asyncio.sleep(_SETTLING)
