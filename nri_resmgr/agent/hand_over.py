"""Hands documents of the cluster over to the daemon, which judges them.

A document is a file of the spool folder. It is replaced only where it differs, and at
most once a second, so that a storm of changes does not become one of the daemon's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from time import monotonic
from typing import Final

from nri_resmgr.agent.adjustment_pace import AdjustmentPace
from nri_resmgr.agent.adjustments import AdjustmentsWatch, text_of
from nri_resmgr.agent.api import ApiClient
from nri_resmgr.agent.choice import Chosen, ConfigObject
from nri_resmgr.agent.configuration import ConfigScope, ConfigurationWatch
from nri_resmgr.agent.daemon_link import DaemonLink
from nri_resmgr.agent.daemon_state import JudgedAdjustments
from nri_resmgr.agent.metrics import AgentCounters, By, What
from nri_resmgr.agent.report_pace import ReportPace
from nri_resmgr.agent.spool_folder import SpoolFolder
from nri_resmgr.agent.verdict import PENDING, Outcome, Verdict, verdict_of
from nri_resmgr.log import Logger
from nri_resmgr.spool import ADJUSTMENTS, CONFIGURATION, SpoolFile, SpoolHeader
from nri_resmgr.values import InputError
from nri_resmgr.values.sha256 import sha256_of

log = Logger(__name__)

HAND_OVER_PAUSE: Final = 1.0
"""Seconds between two documents for the daemon: a storm of changes is one a second."""

_FILES: Final = {
    What.CONFIGURATION: CONFIGURATION,
    What.ADJUSTMENTS: ADJUSTMENTS,
}


class Written(Enum):
    """What writing a document did."""

    NEW = auto()
    SAME = auto()
    REJECTED = auto()


class DocumentSpool:
    """Writes documents to the spool, counts them, and has the verdicts asked for.

    Args:
        spool: The folder.
        counters: Of the agent.
        daemon: The daemon.
    """

    def __init__(
        self, spool: SpoolFolder, counters: AgentCounters, daemon: DaemonLink
    ) -> None:
        self._spool = spool
        self._counters = counters
        self.daemon = daemon

    def read(self, what: What) -> SpoolFile | None:
        """Return what was written last, also by the process before."""
        return self._spool.read(_FILES[what])

    def write(self, what: What, header: SpoolHeader, text: str, title: str) -> Written:
        """Write a document unless it is there already.

        One that cannot be written is logged.

        Args:
            what: The kind of document.
            header: Its header in the spool.
            text: The document.
            title: Name of the document in the log.

        Raises:
            SpoolUnusable: The folder cannot be written.
        """
        try:
            is_new = self._spool.write(_FILES[what], header, text)
        except InputError as error:
            log.error("agent.not-handed-over", object=title, why=str(error))
            self.note_unusable(what)
            return Written.REJECTED
        if not is_new:
            return Written.SAME
        self._counters.handed_over[what] += 1
        self.daemon.expect_verdict()
        return Written.NEW

    def note_unusable(self, what: What) -> None:
        """Count an object that has no document which can be handed over."""
        self._counters.rejected[what, By.AGENT] += 1


class ConfigurationHandOver:
    """Hands over the document of the object that counts for the node.

    Args:
        api: The client of the API server.
        scope: The objects that may configure the node.
        documents: The spool.
        chance: Returns random numbers from 0 to 1, by which nodes spread reports.
        changed: Called when the choice, or what was handed over, may have changed.

    Attributes:
        watch: The objects, and the choice.
        pace: When a change of the choice is reported.
        config: The object that was handed over last; None before there was one.
    """

    def __init__(
        self,
        api: ApiClient,
        scope: ConfigScope,
        documents: DocumentSpool,
        chance: Callable[[], float],
        changed: Callable[[], None],
    ) -> None:
        self._documents = documents
        self._node = scope.node
        self._chance = chance
        self._changed = changed
        self._choice_changed = asyncio.Event()
        self.watch = ConfigurationWatch(
            api,
            scope,
            self._choice_changed.set,
            lambda: documents.note_unusable(What.CONFIGURATION),
        )
        self.pace = ReportPace(self.watch.own_name, monotonic())
        file = documents.read(What.CONFIGURATION)
        self.config = _config_of(file)
        self._digest = file.digest if file else ""

    @property
    def verdict(self) -> Verdict:
        """The daemon's verdict on the document."""
        verdicts = self._documents.daemon.verdicts
        if self.config is None or verdicts is None:
            return PENDING
        return verdict_of(verdicts.configuration, self.config.uid, self._digest)

    @property
    def is_judged(self) -> bool:
        """Whether the daemon has judged what was handed over, if anything was."""
        return self.config is None or self.verdict.outcome is not Outcome.PENDING

    async def run(self) -> None:
        """Hand over the chosen document, at most once in a pause, until cancelled."""
        self._choice_changed.set()  # after a failure it is not written yet
        while True:
            await self._choice_changed.wait()
            self._choice_changed.clear()
            choice, pause = self.watch.choice, 0.0
            self.pace.chosen(choice, monotonic(), self._chance())
            match choice:
                case Chosen(config):
                    self._hand(config)
                    pause = HAND_OVER_PAUSE
            self._changed()
            await asyncio.sleep(pause)

    def _hand(self, config: ConfigObject) -> None:
        header = SpoolHeader(
            kind=config.kind,
            name=config.name,
            namespace=config.namespace,
            uid=config.uid,
            generation=config.generation,
            resource_version=config.resource_version,
            node=self._node,
        )
        title = str(config)
        written = self._documents.write(What.CONFIGURATION, header, config.text, title)
        if written is Written.REJECTED:
            return
        self.config, self._digest = config, sha256_of(config.text.encode())
        if written is Written.NEW:
            log.info("agent.handed-over", object=title, generation=config.generation)
            self.pace.handed_over(monotonic())


class AdjustmentsHandOver:
    """Hands over all adjustments of the cluster: the daemon knows which ones it has.

    Args:
        api: The client of the API server.
        scope: Has the node and the namespace.
        documents: The spool.
        chance: Returns random numbers from 0 to 1, by which nodes spread reports.
        changed: Called when they were handed over, changed or not.

    Attributes:
        watch: The adjustments.
        pace: When a change of them is reported.
        judged: The last verdict of the daemon, also while it does not answer; None
            before there was one.
    """

    def __init__(
        self,
        api: ApiClient,
        scope: ConfigScope,
        documents: DocumentSpool,
        chance: Callable[[], float],
        changed: Callable[[], None],
    ) -> None:
        self._documents = documents
        self._node = scope.node
        self._chance = chance
        self._changed = changed
        self._adjustments_changed = asyncio.Event()
        self.watch = AdjustmentsWatch(
            api,
            scope.namespace,
            self._adjustments_changed.set,
            lambda: documents.note_unusable(What.ADJUSTMENTS),
        )
        self.pace = AdjustmentPace(scope.node)
        self.judged: JudgedAdjustments | None = None
        file = documents.read(What.ADJUSTMENTS)
        self._digest = file.digest if file else ""

    @property
    def is_judged(self) -> bool:
        """Whether the daemon has judged what was handed over, if anything was."""
        digest = self.judged.digest if self.judged else ""
        return digest == self._digest

    def note_verdicts(self) -> None:
        """Note that the daemon's verdicts may have changed."""
        if (verdicts := self._documents.daemon.verdicts) is not None:
            self.judged = verdicts.adjustments or self.judged

    async def run(self) -> None:
        """Hand over all adjustments, at most once in a pause, until cancelled."""
        if self.watch.found is not None:
            self._adjustments_changed.set()  # after a failure they are not written yet
        while True:
            await self._adjustments_changed.wait()
            self._adjustments_changed.clear()
            found = self.watch.found or {}
            # Before the daemon can judge them.
            self.pace.seen(found.values(), monotonic(), self._chance())
            header = SpoolHeader(kind="AdjustmentList", node=self._node)
            text = text_of(found)
            written = self._documents.write(
                What.ADJUSTMENTS, header, text, "adjustments"
            )
            if written is not Written.REJECTED:
                self._digest = sha256_of(text.encode())
            if written is Written.NEW:
                log.info("agent.adjustments-handed-over", count=len(found))
            self._changed()
            await asyncio.sleep(HAND_OVER_PAUSE)


def _config_of(file: SpoolFile | None) -> ConfigObject | None:
    """Return the object that was handed over before this process started."""
    if file is None:
        return None
    header = file.header
    return ConfigObject(
        kind=header.kind,
        namespace=header.namespace,
        name=header.name,
        uid=header.uid,
        generation=header.generation,
        resource_version=header.resource_version,
        text=file.body,
    )
