"""The last document from outside that was accepted, kept for the next start."""

from __future__ import annotations

import asyncio
import re
from binascii import crc32
from dataclasses import dataclass
from typing import Final

from nri_resmgr.app.configuration.status import Document, Source
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.log import Logger
from nri_resmgr.values import HostError, InputError

log = Logger(__name__)

CACHE_NAME: Final = "configuration.yaml"

# A comment: what follows is the document to the letter, and `check` takes the whole.
_HEAD: Final = re.compile(r"# nri-resmgr cache (\d+): ([a-z-]+) ([0-9a-f]{8})\n")
_VERSION: Final = "1"


@dataclass(eq=False)
class BadCache(InputError):
    """The cached document is not as it was written."""

    why: str

    def __str__(self) -> str:
        return self.why


def encode(document: Document) -> str:
    """Write a document with where it is from, and with what tells a cut text."""
    check = crc32(document.text.encode("utf-8", "surrogateescape"))
    head = f"# nri-resmgr cache {_VERSION}: {document.source.value} {check:08x}\n"
    return head + document.text


def decode(text: str) -> Document:
    """Read what `encode` wrote.

    Raises:
        BadCache: Something else did, or only a part is there.
    """
    found = _HEAD.match(text)
    if found is None:
        raise BadCache("no document that was cached")
    version, source, check = found.groups()
    if version != _VERSION:
        raise BadCache(f"of version {version}, not {_VERSION}")
    body = text[found.end() :]
    if int(check, 16) != crc32(body.encode("utf-8", "surrogateescape")):
        raise BadCache("not as it was written")
    if source not in list(Source) or not Source(source).is_external:
        raise BadCache(f"of no source that is cached: {source}")
    return Document(body, Source(source), cached=True)


class ConfigurationCache:
    """One document in the state directory.

    Args:
        state: The directory, locked by this process.
    """

    def __init__(self, state: StateDir) -> None:
        self._state = state
        self._due: list[Document | None] = []
        self._writing: asyncio.Task[None] | None = None
        self._failed = False

    def read(self) -> Document | None:
        """Return the document, if there is one that is whole.

        What is not is set aside.
        """
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
        """Put away a document that cannot be used, and tell why."""
        why = f"{self._state.path}/{CACHE_NAME}: {error}"
        try:
            log.warning(
                "configuration.cache-set-aside",
                why=why,
                now=self._state.set_aside(CACHE_NAME),
            )
        except HostError as failure:
            log.warning("configuration.cache-unusable", why=why, still=str(failure))

    def keep(self, document: Document | None) -> None:
        """Write a document, or remove it: in a thread, because disks can be slow.

        Of several that come at once only the last is written.
        """
        self._due = [document]
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_due())

    async def _write_due(self) -> None:
        try:
            while self._due:
                document = self._due.pop()
                await asyncio.to_thread(self._write, document)
        finally:
            self._writing = None

    def _write(self, document: Document | None) -> None:
        try:
            if document is None:
                self._state.remove(CACHE_NAME)
            else:
                self._state.write(CACHE_NAME, encode(document))
        except HostError as error:
            if not self._failed:  # once per outage
                log.error("configuration.not-cached", why=str(error))
            self._failed = True
        else:
            self._failed = False
