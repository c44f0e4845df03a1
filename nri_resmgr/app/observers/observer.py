"""Base of decision observers: log, metrics, checkpoint writer, reconcilers."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import msgspec

from nri_resmgr.app.observers.after_reply import Steps
from nri_resmgr.app.observers.event_kinds import EventKind
from nri_resmgr.config import PolicyConfig
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import Event
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.values import ResmgrError

PolicyDecision: TypeAlias = Decision[KnowsContainers]
"""A decision of any policy."""


class Subject(msgspec.Struct, frozen=True):
    """The pod, or the container of it, that a request is about.

    Attributes:
        pod_uid: Kubernetes' id of the pod; empty where it is not known.
    """

    namespace: str
    pod: str
    container: str = ""
    pod_uid: str = ""

    @property
    def title(self) -> str:
        """``namespace/pod/container``, or ``namespace/pod``."""
        names = (self.namespace, self.pod, self.container)
        return "/".join(name for name in names if name)


class DecisionObserver:
    """Ignores everything; subclasses override the methods that they need.

    Called in the event loop once the reply is out, in the order of the decisions.
    The next request may be waiting: be quick. Must not raise.
    """

    def decided(self, event: Event, decision: PolicyDecision) -> Steps | None:
        """An event was decided; ``decision.state`` is the new state.

        Returns:
            The rest of the work, where it grows with the number of containers: it is
            done in steps, between which requests are answered.
        """

    def refused(self, subject: Subject, error: ResmgrError) -> None:
        """A request was refused, and nothing has changed.

        Args:
            subject: Its pod or container.
            error: The reason; its sentence was the reply.
        """

    def ineffective(self, title: str, why: str) -> None:
        """A container runs, and one of its annotations has no effect."""

    def configured(self, config: PolicyConfig) -> None:
        """Another configuration, or the same one on another machine, is in force."""


class EventLog(Protocol):
    """Takes events for the control socket; the `History` is one."""

    def note(
        self, kind: EventKind, title: str = "", why: str = "", word: str = ""
    ) -> None:
        """Note an event that is no decision."""
