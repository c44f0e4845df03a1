"""The configuration of the cluster: offered or tried, and the verdict on it."""

from __future__ import annotations

import time
from typing import Final

import msgspec

from nri_resmgr.app.configuration.acceptance import ActiveConfiguration, ReadConfig
from nri_resmgr.app.configuration.cluster import (
    DocumentMistake,
    JudgedConfiguration,
    Verdict,
)
from nri_resmgr.app.configuration.status import Document, DocumentSource, WouldChange
from nri_resmgr.app.configuration.trials import TrialEvents
from nri_resmgr.app.observers.observer import EventLog
from nri_resmgr.config import PolicyConfig
from nri_resmgr.daemon.cluster.reading import Config, Found, Reading, read_config
from nri_resmgr.host.spool_folder import SpoolFolder
from nri_resmgr.log import Logger
from nri_resmgr.spool import CONFIGURATION, ClusterObject, SpoolFile
from nri_resmgr.values import ResmgrError

log = Logger(__name__)

# A trial builds a policy, which takes a tenth of a second on a large machine.
_TRIAL: Final = 30.0  # seconds between two

_TRIED: Final = "mode is DryRun: the configuration before stays in force"


class ClusterConfiguration:
    """Offers the configuration that the folder has, and keeps the verdict.

    Args:
        folder: The spool folder.
        ignored: Why the configuration does not count; empty where it does.

    Attributes:
        judged: The verdict on the last document; None before the first.
    """

    def __init__(self, folder: SpoolFolder, ignored: str) -> None:
        self.judged: JudgedConfiguration | None = None
        self._folder = folder
        self._ignored = ignored
        self._file: SpoolFile | None = None  # the last one that could be read
        self._tried_at = 0.0
        self._trials = TrialEvents()

    @property
    def is_known(self) -> bool:
        """True if there was a document that could be read."""
        return self._file is not None

    @property
    def is_trial_due(self) -> bool:
        """True if it is tried only, and has to be again: containers come and go."""
        return self._is_trial and self._tried_at + _TRIAL < time.monotonic()

    def report_trials(self, events: EventLog) -> None:
        """Have trials of documents noted as events."""
        self._trials.events = events

    def first(self, found: Found) -> Document | None:
        """Take the file that was read at the start, and return its document."""
        match found:
            case SpoolFile() as file:
                self._file = file
                return _document_of(file)
            case ResmgrError() as error:
                self._note_unreadable(error)
        return None

    def judge(
        self,
        error: ResmgrError | None,
        would_change: tuple[WouldChange, ...] | None = None,
    ) -> None:
        """Note the verdict on the last document.

        Args:
            error: Why it is rejected; None if it is not.
            would_change: What it would change, if it is tried only.
        """
        if (file := self._file) is None:
            return
        found, now = ClusterObject.of(file), time.time()
        if error is not None:
            mistakes = (DocumentMistake.of(error),)
            self.judged = JudgedConfiguration(
                found, Verdict.REJECTED, now, str(error), mistakes
            )
        else:
            verdict = Verdict.IGNORED if self._ignored else Verdict.ACCEPTED
            why = self._ignored or (_TRIED if would_change is not None else "")
            self.judged = JudgedConfiguration(
                found, verdict, now, why, would_change=would_change
            )

    def take(self, active: ActiveConfiguration, reading: Reading) -> bool:
        """Offer the document if it is new; return whether the verdict was reached anew.

        Args:
            active: Accepts configurations.
            reading: The folder, which could be read.
        """
        before = self.judged
        match reading.configuration:
            case None:
                self._note_gone()
            case SpoolFile() as file:
                self._take_file(active, file, reading.config)
            case error:
                self._note_unreadable(error)
        return self.judged is not before

    def take_again(
        self, active: ActiveConfiguration, reading: Reading, *, force: bool
    ) -> None:
        """Offer the document, even if it is the one that is known.

        Raises:
            ResmgrError: It has a mistake, or does not fit.
        """
        if isinstance(error := reading.configuration, ResmgrError):
            raise error
        if self._file is not None:
            self._offer(active, self._file, reading.config, again=True, force=force)

    @property
    def _is_trial(self) -> bool:
        return self.judged is not None and self.judged.would_change is not None

    def _take_file(
        self, active: ActiveConfiguration, file: SpoolFile, config: Config
    ) -> None:
        judged = self.judged
        if judged is None or file != self._file:
            self._offer(active, file, config)
        elif self.is_trial_due:
            self._offer(active, file, config)
            if self.judged is not None and self.judged.verdict is judged.verdict:
                self.judged = msgspec.structs.replace(self.judged, since=judged.since)
        elif judged.gone or judged.problem:
            self.judged = msgspec.structs.replace(judged, gone=0.0, problem="")

    def _offer(
        self,
        active: ActiveConfiguration,
        file: SpoolFile,
        config: Config,
        *,
        again: bool = False,
        force: bool = False,
    ) -> None:
        self._file = file
        document = _document_of(file)
        if self._ignored:
            self.judge(None)
            return
        found = config or read_config(file.body)

        def read(_: str) -> PolicyConfig:
            if isinstance(found, ResmgrError):
                raise found
            return found

        would_change = None
        try:
            if not isinstance(found, ResmgrError) and found.dry_run:
                would_change = self._tried(active, document, read)
            else:
                self._trials.end()
                active.offer(document, again=again, force=force, read=read)
        except ResmgrError as error:
            self.judge(error)
            if again:
                raise
        except BaseException:
            self._file = None
            self._folder.forget()  # a fault of ours, so it is offered again
            raise
        else:
            self.judge(None, would_change)

    def _tried(
        self, active: ActiveConfiguration, document: Document, read: ReadConfig
    ) -> tuple[WouldChange, ...]:
        self._tried_at = time.monotonic()
        try:
            found = active.try_out(document, read)
        except ResmgrError as error:
            active.reject(document, error)
            raise
        if self._trials.note(document, found):
            log.info("configuration.tried", name=document.name, changes=len(found))
        return found

    def _note_gone(self) -> None:
        judged = self.judged
        if judged is None or judged.gone:
            return
        self.judged = msgspec.structs.replace(judged, gone=time.time(), problem="")
        log.warning(
            "cluster.configuration-gone",
            name=str(judged.object),
            why="the cluster has none for this node; the last one stays in force",
        )

    def _note_unreadable(self, error: ResmgrError) -> None:
        why, judged = str(error), self.judged
        if judged is None:
            judged = JudgedConfiguration(
                ClusterObject(""), Verdict.REJECTED, time.time(), why
            )
        if judged.problem != why:
            self.judged = msgspec.structs.replace(judged, problem=why)
            path = f"{self._folder.path}/{CONFIGURATION}"
            log.error("cluster.file-unreadable", path=path, why=why)


def _document_of(file: SpoolFile) -> Document:
    return Document(file.body, DocumentSource.CLUSTER, str(ClusterObject.of(file)))
