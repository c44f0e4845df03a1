"""Choice of the configuration document at the start."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from nri_resmgr.app.configuration.status import BUILT_IN, Document, DocumentSource
from nri_resmgr.config import PolicyConfig, parse_config
from nri_resmgr.daemon.configuration_cache import ConfigurationCache
from nri_resmgr.host.file_watch import WatchedFile
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.values import InputError, ResmgrError

_T = TypeVar("_T")


@dataclass(eq=False)
class BadConfigFile(InputError):
    """A configuration file of the command line has a mistake."""

    path: str
    mistake: InputError

    def __str__(self) -> str:
        return f"{self.path}: {self.mistake}"


class TwoConfigFiles(InputError):
    """``--config-file`` and ``--fallback-config`` are both set."""

    def __str__(self) -> str:
        return (
            "--config-file and --fallback-config exclude each other: the first is the "
            "only configuration, the second one is used until the runtime sends one"
        )


class Documents:
    """The documents at the start: of the command line, and of the cache.

    Precedence: ``--config-file``, which excludes all others; the last document of the
    runtime, from the cache; ``--fallback-config``; the built-in default.

    Args:
        options: The command line.
        state: The directory of the cache; None for none.

    Attributes:
        source: The source of the file.
        file: The file of the command line; None for none.
        cache: The cache of the runtime's documents; None without state directory.

    Raises:
        TwoConfigFiles: The command line has two files.
    """

    def __init__(self, options: argparse.Namespace, state: StateDir | None) -> None:
        if options.config_file and options.fallback_config:
            raise TwoConfigFiles
        self.source = (
            DocumentSource.FILE if options.config_file else DocumentSource.FALLBACK
        )
        path = options.config_file or options.fallback_config
        self.file = WatchedFile(path) if path else None
        self.cache = ConfigurationCache(state) if state else None

    def of_file(self) -> Iterator[Document]:
        """Read the file, if there is one.

        Raises:
            InputError: It cannot be read.
        """
        if self.file is not None:
            yield Document(self.file.read(), self.source, self.file.path)

    def first(self, use: Callable[[PolicyConfig], _T]) -> tuple[Document, _T]:
        """Find the first usable document.

        Args:
            use: Raises where a configuration is not usable.

        Returns:
            The document, and what *use* returned for it.

        Raises:
            InputError: A file of the command line has a mistake.
        """
        for document in self._candidates():
            try:
                used = use(parse_config(document.text))
            except ResmgrError as error:
                self._discard(document, error)
            else:
                return document, used
        raise AssertionError("the built-in default fits every machine")

    def _candidates(self) -> Iterator[Document]:
        cache = None if self.source is DocumentSource.FILE else self.cache
        if cache is not None and (cached := cache.read()) is not None:
            yield cached
        yield from self.of_file()
        yield BUILT_IN

    def _discard(self, document: Document, error: ResmgrError) -> None:
        if document.cached and self.cache is not None:
            self.cache.set_aside(error)
        elif document.name and isinstance(error, InputError):
            raise BadConfigFile(document.name, error) from None
        else:
            raise error
