"""Drift as lines of the log, as events and in counters: once per change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from nri_resmgr.app.observing.history import History
from nri_resmgr.app.verification.drift import Finding, Verdict, sentence
from nri_resmgr.log import Logger

log = Logger(__name__)

_BLAME: Final = (
    "it may be a kubelet with a static CPU or memory manager, systemd, another NRI "
    "plugin, or somebody by hand"
)

# Those that were told of, and what is told when they end.
_TOLD: Final = frozenset(
    {Verdict.DRIFTED, Verdict.CONFINED, Verdict.OFFLINE, Verdict.UNREADABLE}
)
_ENDED: Final = frozenset({Verdict.AS_DECIDED, Verdict.NOT_PINNED})
_COUNTED: Final = frozenset({Verdict.DRIFTED, Verdict.CONFINED})


class Counters(Protocol):
    """Who counts drift; a `Metrics` is one."""

    def drift(self, kind: str, containers: int = 1) -> None:
        """Count containers by what differs."""


class DriftReport:
    """Tells what has changed since it was told last.

    Args:
        history: Where events are noted.
        counters: Who counts; None where nobody does.
        suspects: Says who is known to write what we write, a sentence each.
    """

    def __init__(
        self,
        history: History,
        counters: Counters | None = None,
        suspects: Callable[[], Sequence[Any]] = tuple,
    ) -> None:
        self._history = history
        self._counters = counters
        self._suspects = suspects
        self._told: dict[str, Finding] = {}

    def found(self, container: str, title: str, finding: Finding) -> None:
        """Take what a look at a container showed, and tell it if it is news."""
        before = self._told.get(container)
        if finding.verdict in _TOLD:
            if finding != before:
                self._told[container] = finding
                self._tell(container, title, finding)
        elif before is not None and finding.verdict in _ENDED:
            del self._told[container]
            log.info("drift.cleared", container=container, title=title)
            self._history.note("drift.cleared", title)

    def gave_up(self, container: str, title: str, attempts: int) -> None:
        """Tell that a container is left with what somebody else gave it."""
        finding = self._told[container]
        suspects = "; ".join(map(str, self._suspects())) or _BLAME
        why = (
            f"{sentence(title, finding)} again after {attempts} updates, so it is left "
            f"like that: {suspects}"
        )
        log.error("drift.abandoned", container=container, title=title, why=why)
        word = ",".join(finding.kinds)
        self._history.note("drift.abandoned", title, why, word)

    def keep_only(self, containers: Any) -> None:
        """Forget what was told of others."""
        for key in self._told.keys() - set(containers):
            del self._told[key]

    def _tell(self, container: str, title: str, finding: Finding) -> None:
        name, kinds = f"container.{finding.verdict}", ",".join(finding.kinds)
        why = finding.why or sentence(title, finding)
        told = log.info if finding.verdict is Verdict.OFFLINE else log.warning
        told(name, container=container, title=title, kinds=kinds, why=why)
        self._history.note(name, title, why, kinds)
        if self._counters is not None and finding.verdict in _COUNTED:
            for kind in finding.kinds:
                self._counters.drift(kind)
