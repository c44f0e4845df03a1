"""Configuration documents, and the status of the one in force, as values."""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from nri_resmgr.policy.events import Pin
from nri_resmgr.values.sha256 import sha256_of


class DocumentSource(enum.StrEnum):
    """The source of a document; a later member overrides all before it."""

    BUILT_IN = "built-in"
    FALLBACK = "fallback-file"  # --fallback-config
    RUNTIME = "runtime"  # the text of Configure
    CLUSTER = "cluster"  # the agent's document in the spool folder
    FILE = "file"  # --config-file, which excludes all others

    @property
    def is_external(self) -> bool:
        """True if its documents are cached for the next start."""
        return self in (DocumentSource.RUNTIME, DocumentSource.CLUSTER)

    def overrides(self, other: DocumentSource) -> bool:
        """Return whether its documents take precedence over those of *other*."""
        return _ORDER.index(self) > _ORDER.index(other)


_ORDER: Final = tuple(DocumentSource)


class Document(msgspec.Struct, frozen=True):
    """The text of a configuration.

    Attributes:
        text: YAML.
        name: Its path, if it is a file; kind, namespace and name of an object.
        cached: Whether it was read from the cache, and its source has not sent it
            since.
    """

    text: str
    source: DocumentSource
    name: str = ""
    cached: bool = False

    def __str__(self) -> str:
        where = f"{self.source.value} {self.name}".strip()
        return f"{where} (cached)" if self.cached else where


BUILT_IN: Final = Document("", DocumentSource.BUILT_IN)
"""The default, which fits every machine."""


class WouldChange(msgspec.Struct, frozen=True):
    """A container that a document in mode ``DryRun`` would change.

    Attributes:
        id: Of the container.
        title: ``namespace/pod/container``.
        now: Its present pin.
        then: Its pin with the document.
    """

    id: str
    title: str
    now: Pin
    then: Pin


class Setting(msgspec.Struct, frozen=True):
    """A value in force, and its origin.

    Attributes:
        name: Short words for people, such as ``debug``.
        source: A flag, such as ``--http-endpoint``, or a path in the document.
    """

    name: str
    value: str
    source: str


class Rejection(msgspec.Struct, frozen=True):
    """A rejected document.

    Attributes:
        name: See `Document`.
        why: The mistake, in one sentence.
        when: Seconds since the epoch.
    """

    source: DocumentSource
    name: str
    why: str
    when: float


class ConfigurationStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The document in force, and the last rejected one.

    Attributes:
        name: See `Document`.
        cached: Whether it was read from the cache of an earlier process.
        accepted: When it was put in force; seconds since the epoch.
        generation: Counts changes of the configuration in force, from 1.
        ineffective: Paths of options without effect.
        error: The last of them; None once its source, or one that overrides it, has
            sent a correct one.
    """

    source: DocumentSource
    name: str
    cached: bool
    kind: str
    text: str
    accepted: float
    generation: int
    ineffective: tuple[str, ...]
    rejected: int
    error: Rejection | None

    @property
    def sha256(self) -> str:
        """The hash of its text, in hexadecimal."""
        return sha256_of(self.text.encode())
