"""Choice of the configuration document at the start."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from nri_resmgr.app.configuration.acceptance import DryRunElsewhere, SwitchForbidden
from nri_resmgr.app.configuration.status import BUILT_IN, Document, DocumentSource
from nri_resmgr.config import PolicyConfig
from nri_resmgr.daemon.configuration_cache import ConfigurationCache
from nri_resmgr.host.file_watch import WatchedFile
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.policies import parse_config
from nri_resmgr.values import InputError, ResmgrError

if TYPE_CHECKING:  # see `Documents`
    from nri_resmgr.daemon.cluster.documents import ClusterDocuments

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

    Precedence: ``--config-file``, which excludes all others; the document of the
    cluster in the ``--spool`` folder; the last document of the cluster or the runtime,
    from the cache; ``--fallback-config``; the built-in default.

    Args:
        options: The command line.
        state: The directory of the cache; None for none.
        kept: The kind that a document of the cluster must have; empty for any.

    Attributes:
        source: The source of the file.
        file: The file of the command line; None for none.
        cache: The cache of external documents; None without state directory.
        cluster: The spool folder; None without.
        rejected: Documents of the cluster that were not usable at the start.

    Raises:
        TwoConfigFiles: The command line has two files.
    """

    def __init__(
        self, options: argparse.Namespace, state: StateDir | None, kept: str = ""
    ) -> None:
        if options.config_file and options.fallback_config:
            raise TwoConfigFiles
        self.source = (
            DocumentSource.FILE if options.config_file else DocumentSource.FALLBACK
        )
        path = options.config_file or options.fallback_config
        self.file = WatchedFile(path) if path else None
        self.cache = ConfigurationCache(state) if state else None
        self.cluster: ClusterDocuments | None = None
        if options.spool:
            # Late: only in clusters that configure their nodes.
            from nri_resmgr.daemon.cluster.documents import ClusterDocuments

            ignored = f"--config-file {path} is set" if options.config_file else ""
            self.cluster = ClusterDocuments(options.spool, ignored=ignored)
            self.cluster.begin()
        self.rejected: list[tuple[Document, ResmgrError]] = []
        self._kept = kept

    def of_file(self) -> Iterator[Document]:
        """Read the file, if there is one.

        Raises:
            InputError: It cannot be read.
        """
        if self.file is not None:
            yield Document(self.file.read(), self.source, self.file.path)

    def first(self, use: Callable[[Document, PolicyConfig], _T]) -> _T:
        """Find the first usable document.

        Args:
            use: Uses a document, with the configuration in it, or raises.

        Returns:
            What *use* returned.

        Raises:
            InputError: A file of the command line has a mistake.
        """
        for document in self._candidates():
            try:
                config = parse_config(document.text)
                if config.dry_run and _is_of_cluster(document):
                    continue  # tried once there is a policy
                if config.dry_run:
                    _refuse_dry_run(document)
                self._check_kind(document, config)
                used = use(document, config)
            except ResmgrError as error:
                self._discard(document, error)
            else:
                if self.cluster is not None and _is_of_cluster(document):
                    self.cluster.judge(None)
                return used
        raise AssertionError("the built-in default fits every machine")

    def _candidates(self) -> Iterator[Document]:
        excludes = self.source is DocumentSource.FILE
        cluster = None if excludes else self.cluster
        if cluster is not None and (document := cluster.first()) is not None:
            yield document
        cache = None if excludes else self.cache
        if cache is not None and (cached := cache.read()) is not None:
            yield cached
        yield from self.of_file()
        yield BUILT_IN

    def _check_kind(self, document: Document, config: PolicyConfig) -> None:
        # Else Synchronize would fail until the cluster has another document.
        if _is_of_cluster(document) and self._kept not in ("", config.kind):
            raise SwitchForbidden(config.kind, self._kept)

    def _discard(self, document: Document, error: ResmgrError) -> None:
        if self.cluster is not None and _is_of_cluster(document):
            self.cluster.judge(error)
            self.rejected.append((document, error))
        elif document.cached and self.cache is not None:
            self.cache.set_aside(error)
        elif document.name and isinstance(error, InputError):
            raise BadConfigFile(document.name, error) from None
        else:
            raise error


def _refuse_dry_run(document: Document) -> None:
    raise DryRunElsewhere(document.source)


def _is_of_cluster(document: Document) -> bool:
    return document.source is DocumentSource.CLUSTER and not document.cached
