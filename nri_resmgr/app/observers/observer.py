"""Who is told what was decided: the log, counters, the checkpoint, whoever asks."""

from __future__ import annotations

from typing import Any

from nri_resmgr.config import PolicyConfig
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import Event
from nri_resmgr.values import ResmgrError


class DecisionObserver:
    """Does nothing at each step; override what you want to know.

    Called in the event loop once the reply is out, in the order of the decisions.
    The next request may be waiting: be quick. Must not raise.
    """

    def decided(self, event: Event, decision: Decision[Any]) -> None:
        """An event was decided; ``decision.state`` is what holds since."""

    def refused(self, title: str, error: ResmgrError) -> None:
        """A request was refused, and nothing has changed.

        Args:
            title: ``namespace/pod/container``, or ``namespace/pod``.
            error: What the runtime was told.
        """

    def configured(self, config: PolicyConfig) -> None:
        """Another configuration, or the same one on another machine, is in force."""
