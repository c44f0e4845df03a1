"""Watches that fail now, and why: logged once, and reported to the daemon."""

from __future__ import annotations

from nri_resmgr.agent.api import Failing, News, Recovered
from nri_resmgr.agent.api.errors import KindMissing
from nri_resmgr.log import Logger

log = Logger(__name__)


class WatchProblems:
    """Collects failing watches by the object that they watch."""

    def __init__(self) -> None:
        self._failing: dict[str, str] = {}

    def __str__(self) -> str:
        return "; ".join(sorted(set(self._failing.values())))

    def note(self, what: str, news: News) -> None:
        """Note what a watch reports.

        Args:
            what: What is watched.
            news: The report.
        """
        match news:
            case Failing(KindMissing()):
                return  # most clusters use one kind, and few have adjustments
            case Failing(error):
                self._failing[what] = str(error)
                log.warning("agent.watch-failing", object=what, why=str(error))
            case Recovered() if self._failing.pop(what, None) is not None:
                log.info("agent.watch-recovered", object=what)
