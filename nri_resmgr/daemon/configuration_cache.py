"""Cache of the last accepted external document, for the next start."""

from __future__ import annotations

import asyncio
import re
import threading
from binascii import crc32
from dataclasses import dataclass
from typing import Final

from nri_resmgr.app.background.threads import in_thread, start_last_thread
from nri_resmgr.app.configuration.status import Document, DocumentSource
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.log import Logger
from nri_resmgr.values import HostError, InputError, ResmgrError

log = Logger(__name__)

CACHE_NAME: Final = "configuration.yaml"

# A comment, so that `nri-resmgr check` accepts the whole file.
_HEAD: Final = re.compile(r"# nri-resmgr cache (\d+): ([a-z-]+) ([0-9a-f]{8})\n")
_VERSION: Final = "1"

# For the last write at the end.
_PATIENCE: Final = 2.0  # seconds


@dataclass(eq=False)
class BadCache(InputError):
    """The cached document is incomplete or was changed."""

    why: str

    def __str__(self) -> str:
        return self.why


def encode(document: Document) -> str:
    """Return the text of a document with a header: its source and a checksum."""
    check = crc32(document.text.encode("utf-8", "surrogateescape"))
    head = f"# nri-resmgr cache {_VERSION}: {document.source.value} {check:08x}\n"
    return head + document.text


def decode(text: str) -> Document:
    """Read the text of `encode`.

    Raises:
        BadCache: The text is another one, or incomplete.
    """
    found = _HEAD.match(text)
    if found is None:
        raise BadCache("not a cached document")
    version, source, check = found.groups()
    if version != _VERSION:
        raise BadCache(f"has cache version {version}, expected {_VERSION}")
    body = text[found.end() :]
    if int(check, 16) != crc32(body.encode("utf-8", "surrogateescape")):
        raise BadCache("was changed or cut off: its checksum does not match")
    if source not in list(DocumentSource) or not DocumentSource(source).is_external:
        raise BadCache(f"has a source that is not cached: {source}")
    return Document(body, DocumentSource(source), cached=True)


class ConfigurationCache:
    """One document in the state directory.

    Args:
        state: The directory, locked by this process.
    """

    def __init__(self, state: StateDir) -> None:
        self._state = state
        self._due: tuple[Document | None, ...] = ()
        self._wake = asyncio.Event()
        self._busy = threading.Lock()

    def read(self) -> Document | None:
        """Return the cached document, if there is one; an invalid one is set aside."""
        try:
            text = self._state.read(CACHE_NAME)
        except HostError as error:
            log.warning("configuration.cache-unreadable", why=str(error))
            return None
        if text is None:
            return None
        try:
            return decode(text)
        except BadCache as error:
            self.set_aside(error)
            return None

    def set_aside(self, error: Exception) -> None:
        """Set an unusable document aside, and log why."""
        why = f"{self._state.path}/{CACHE_NAME}: {error}"
        try:
            log.warning(
                "configuration.cache-set-aside",
                why=why,
                moved_to=self._state.set_aside(CACHE_NAME),
            )
        except HostError as failure:
            log.warning("configuration.cache-unusable", why=why, not_moved=str(failure))

    def keep(self, document: Document | None) -> None:
        """Have a document written, or removed for None, by `run`.

        Of several documents during a write only the last is written.
        """
        self._due = (document,)
        self._wake.set()

    async def run(self) -> None:
        """Write documents, in a thread: disks can be slow; call again after an error.

        Raises:
            Exception: A document could not be written.
        """
        if self._due:
            self._wake.set()
        while True:
            await self._wake.wait()
            self._wake.clear()
            await in_thread(self._write)

    def close(self) -> None:
        """Write a document that is due."""
        if self._due:
            thread = start_last_thread(self._write_last)
            if thread is not None:
                thread.join(_PATIENCE)

    def _write(self) -> None:
        with self._busy:
            due = self._due
            for document in due:
                if document is None:
                    self._state.remove(CACHE_NAME)
                else:
                    self._state.write(CACHE_NAME, encode(document))
            if self._due is due:
                self._due = ()

    def _write_last(self) -> None:
        try:
            self._write()
        except Exception as error:
            # The rest of the end must follow.
            log.error(
                "configuration.not-cached",
                why=str(error) or type(error).__name__,
                exc_info=None if isinstance(error, ResmgrError) else error,
            )
