"""Configuration documents, and the status of the one in force, as values."""

from __future__ import annotations

import enum
from typing import Final

import msgspec


class DocumentSource(enum.StrEnum):
    """The source of a document; a later member overrides all before it."""

    BUILT_IN = "built-in"
    FALLBACK = "fallback-file"  # --fallback-config
    RUNTIME = "runtime"  # the text of Configure
    FILE = "file"  # --config-file, which excludes all others

    @property
    def is_external(self) -> bool:
        """Whether its documents are cached for the next start."""
        return self is DocumentSource.RUNTIME

    def overrides(self, other: DocumentSource) -> bool:
        """Return whether its documents take precedence over those of *other*."""
        return _ORDER.index(self) > _ORDER.index(other)


_ORDER: Final = tuple(DocumentSource)


class Document(msgspec.Struct, frozen=True):
    """The text of a configuration.

    Attributes:
        text: YAML.
        source: Its source.
        name: Its path, if it is a file.
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


class Rejection(msgspec.Struct, frozen=True):
    """A rejected document.

    Attributes:
        source: Its source.
        name: Its path, if it is a file.
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
        source: The source of the document in force.
        name: Its path, if it is a file.
        cached: Whether it was read from the cache of an earlier process.
        kind: Its kind of policy.
        sha256: The hash of its text, in hexadecimal.
        accepted: When it was put in force; seconds since the epoch.
        generation: Counts changes of the configuration in force, from 1.
        ineffective: Paths of options without effect.
        rejected: The number of rejected documents.
        error: The last of them; None once its source, or one that overrides it, has
            sent a correct one.
    """

    source: DocumentSource
    name: str
    cached: bool
    kind: str
    sha256: str
    accepted: float
    generation: int
    ineffective: tuple[str, ...]
    rejected: int
    error: Rejection | None
