"""What there is to say of the configuration in force, as values."""

from __future__ import annotations

import enum
from typing import Final

import msgspec


class Source(enum.StrEnum):
    """Where a document is from; a later one goes before all above it."""

    BUILT_IN = "built-in"
    FALLBACK = "fallback-file"  # --fallback-config
    RUNTIME = "runtime"  # the text of Configure
    FILE = "file"  # --config-file, which shuts out all others

    @property
    def is_external(self) -> bool:
        """Whether documents from there are cached for the next start."""
        return self is Source.RUNTIME

    def goes_before(self, other: Source) -> bool:
        """Tell whether a document from here replaces one from *other*."""
        return _ORDER.index(self) > _ORDER.index(other)


_ORDER: Final = tuple(Source)


class Document(msgspec.Struct, frozen=True):
    """A configuration as somebody wrote it.

    Attributes:
        text: YAML.
        source: Where it is from.
        name: Its path, where it is a file.
        cached: Whether it was read from the cache, and its source has not said it
            again since.
    """

    text: str
    source: Source
    name: str = ""
    cached: bool = False

    def __str__(self) -> str:
        where = f"{self.source.value} {self.name}".strip()
        return f"{where} (cached)" if self.cached else where


BUILT_IN: Final = Document("", Source.BUILT_IN)
"""Safe on every machine."""


class Rejection(msgspec.Struct, frozen=True):
    """A document that was not taken.

    Attributes:
        source: Where it was from.
        name: Its path, where it is a file.
        why: What is wrong with it, in one sentence.
        when: Seconds since the epoch.
    """

    source: Source
    name: str
    why: str
    when: float


class ConfigurationStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What is in force, and what would be if it were right.

    Attributes:
        source: Where the document is from.
        name: Its path, where it is a file.
        cached: Whether it is what the source said last, before this start.
        kind: As in the document.
        sha256: Of its text, in hexadecimal.
        accepted: When it was put in force; seconds since the epoch.
        generation: How often what is in force has changed; 1 from the start.
        ineffective: Paths of what it asks for to no effect.
        rejected: How many documents were not taken.
        error: The last of them; None once its source, or one that goes before that,
            has come up with a good one.
    """

    source: Source
    name: str
    cached: bool
    kind: str
    sha256: str
    accepted: float
    generation: int
    ineffective: tuple[str, ...]
    rejected: int
    error: Rejection | None
