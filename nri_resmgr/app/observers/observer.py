"""Base of decision observers: log, metrics, checkpoint writer, reconcilers."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from nri_resmgr.config import PolicyConfig
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import Event
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.values import ResmgrError

PolicyDecision: TypeAlias = Decision[KnowsContainers]
"""A decision of any policy."""


class DecisionObserver:
    """Ignores everything; subclasses override the methods that they need.

    Called in the event loop once the reply is out, in the order of the decisions.
    The next request may be waiting: be quick. Must not raise.
    """

    def decided(self, event: Event, decision: PolicyDecision) -> None:
        """An event was decided; ``decision.state`` is the new state."""

    def refused(self, title: str, error: ResmgrError) -> None:
        """A request was refused, and nothing has changed.

        Args:
            title: ``namespace/pod/container``, or ``namespace/pod``.
            error: The reason; its sentence was the reply.
        """

    def configured(self, config: PolicyConfig) -> None:
        """Another configuration, or the same one on another machine, is in force."""


class EventLog(Protocol):
    """Takes events for the control socket; the `History` is one."""

    def note(self, kind: str, title: str = "", why: str = "", word: str = "") -> None:
        """Note an event that is no decision."""
