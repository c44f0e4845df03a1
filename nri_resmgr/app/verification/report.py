"""Reports drift in the log, in the event history and in counters, once per change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from nri_resmgr.app.background.repairs import CONTEST_PAUSE, MOST_ATTEMPTS
from nri_resmgr.app.observers.event_kinds import EventKind
from nri_resmgr.app.observing.history import History
from nri_resmgr.app.verification.drift import Finding, Verdict, sentence
from nri_resmgr.log import Logger

log = Logger(__name__)

_POSSIBLE_CAUSES: Final = (
    "possible causes: a kubelet with a static CPU or memory manager, systemd, another "
    "NRI plugin, a manual change"
)

# Verdicts that are reported, with the kinds of their events; and those that end one.
_REPORTED: Final[Mapping[Verdict, EventKind]] = {
    Verdict.DRIFTED: "container.drifted",
    Verdict.CONFINED: "container.confined",
    Verdict.OFFLINE: "container.offline",
    Verdict.UNREADABLE: "container.unreadable",
}
_ENDED: Final = frozenset({Verdict.AS_DECIDED, Verdict.NOT_PINNED})
_COUNTED: Final = frozenset({Verdict.DRIFTED, Verdict.CONFINED})


class DriftReport:
    """Reports findings that have changed since the last report.

    Args:
        count: Counts a container, by the value that differs; None without metrics.
        suspects: Returns the programs known to write the same values, a sentence each.
    """

    def __init__(
        self,
        history: History,
        count: Callable[[str], None] | None = None,
        suspects: Callable[[], Sequence[object]] = tuple,
    ) -> None:
        self._history = history
        self._count = count
        self._suspects = suspects
        self._reported: dict[str, Finding] = {}

    def found(self, container: str, title: str, finding: Finding) -> None:
        """Report the finding of a container if it has changed."""
        before = self._reported.get(container)
        if finding.verdict in _REPORTED:
            if finding != before:
                self._reported[container] = finding
                self._report(container, title, finding)
        # Other verdicts, such as pending, do not show that a difference has ended.
        elif before is not None and finding.verdict in _ENDED:
            del self._reported[container]
            log.info("drift.cleared", container=container, title=title)
            self._history.note("drift.cleared", title)

    def abandoned(self, container: str, title: str, attempts: int) -> None:
        """Report that a container is not repaired any more."""
        finding = self._reported[container]
        why = (
            f"{sentence(title, finding)} again after {attempts} repairs, so repair is "
            f"abandoned: {self._likely_causes()}"
        )
        log.error("drift.abandoned", container=container, title=title, why=why)
        word = ",".join(finding.kinds)
        self._history.note("drift.abandoned", title, why, word)

    def contested(self, container: str, title: str) -> None:
        """Report that another program writes the values of a container all the time."""
        why = (
            f"another program has written the cpuset of {title} {MOST_ATTEMPTS} times "
            f"within ten minutes. From now on its CPUs are written again after "
            f"{CONTEST_PAUSE} s each time, and its memory nodes are left as they are: "
            f"{self._likely_causes()}"
        )
        log.error("drift.contested", container=container, title=title, why=why)
        self._history.note("drift.contested", title, why)

    def keep_only(self, containers: Iterable[str]) -> None:
        """Drop the findings of other containers."""
        for key in self._reported.keys() - set(containers):
            del self._reported[key]

    def _likely_causes(self) -> str:
        return "; ".join(map(str, self._suspects())) or _POSSIBLE_CAUSES

    def _report(self, container: str, title: str, finding: Finding) -> None:
        kinds, why = ",".join(finding.kinds), finding.why or sentence(title, finding)
        match finding.verdict:
            case Verdict.DRIFTED:
                log.warning(
                    "container.drifted",
                    container=container,
                    title=title,
                    kinds=kinds,
                    why=why,
                )
            case Verdict.CONFINED:
                log.warning(
                    "container.confined",
                    container=container,
                    title=title,
                    kinds=kinds,
                    why=why,
                )
            case Verdict.OFFLINE:
                log.info(
                    "container.offline",
                    container=container,
                    title=title,
                    kinds=kinds,
                    why=why,
                )
            case _:
                log.warning(
                    "container.unreadable", container=container, title=title, why=why
                )
        self._history.note(_REPORTED[finding.verdict], title, why, kinds)
        if self._count is not None and finding.verdict in _COUNTED:
            for kind in finding.kinds:
                self._count(kind)
