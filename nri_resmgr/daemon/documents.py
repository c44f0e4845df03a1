"""Which of the documents that there are at the start counts."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from nri_resmgr.app.configuration.status import BUILT_IN, Document, Source
from nri_resmgr.config import PolicyConfig, parse_config
from nri_resmgr.daemon.configuration_cache import ConfigurationCache
from nri_resmgr.host.file_watch import WatchedFile
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.values import InputError, ResmgrError

_T = TypeVar("_T")


@dataclass(eq=False)
class BadConfigFile(InputError):
    """A file that the command line names has a mistake."""

    path: str
    mistake: InputError

    def __str__(self) -> str:
        return f"{self.path}: {self.mistake}"


class TwoConfigFiles(InputError):
    """One file shuts out all others, and another one is named."""

    def __str__(self) -> str:
        return (
            "--config-file and --fallback-config: only one of them can be; the first "
            "is the only configuration, the second counts until there is another"
        )


class Documents:
    """What the command line names, and what an earlier process has kept.

    They count in this order: ``--config-file``, which shuts out all others; what was
    accepted from the runtime last, out of the cache; ``--fallback-config``; the
    built-in default.

    Args:
        options: The command line.
        state: Where the cache is; None for none.

    Attributes:
        source: What a file would be.
        file: The one that is named; None without.
        cache: What the runtime hands over is kept there; None where nothing is.

    Raises:
        TwoConfigFiles: The operator named two.
    """

    def __init__(self, options: argparse.Namespace, state: StateDir | None) -> None:
        if options.config_file and options.fallback_config:
            raise TwoConfigFiles
        self.source = Source.FILE if options.config_file else Source.FALLBACK
        path = options.config_file or options.fallback_config
        self.file = WatchedFile(path) if path else None
        self.cache = ConfigurationCache(state) if state else None

    def of_file(self) -> Iterator[Document]:
        """Read the file, if one is named.

        Raises:
            InputError: It cannot be read.
        """
        if self.file is not None:
            yield Document(self.file.read(), self.source, self.file.path)

    def first(self, use: Callable[[PolicyConfig], _T]) -> tuple[Document, _T]:
        """Find the first that can be used.

        Args:
            use: Raises where a configuration cannot be.

        Returns:
            It, and what *use* returned for it.

        Raises:
            InputError: A file that the operator named, and that counts, is wrong.
        """
        for document in self._candidates():
            try:
                used = use(parse_config(document.text))
            except ResmgrError as error:
                self._give_up(document, error)
            else:
                return document, used
        raise AssertionError("the built-in default fits every machine")

    def _candidates(self) -> Iterator[Document]:
        cache = None if self.source is Source.FILE else self.cache
        if cache is not None and (cached := cache.read()) is not None:
            yield cached
        yield from self.of_file()
        yield BUILT_IN

    def _give_up(self, document: Document, error: ResmgrError) -> None:
        if document.cached and self.cache is not None:
            self.cache.set_aside(error)
        elif document.name and isinstance(error, InputError):
            raise BadConfigFile(document.name, error) from None
        else:
            raise error
