"""Dispatch of decisions to their observers, once the reply is out."""

from __future__ import annotations

from collections.abc import Sequence

from nri_resmgr.app.observers.after_reply import after_reply
from nri_resmgr.app.observers.garbage import collect_if_due
from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.config import PolicyConfig
from nri_resmgr.policy.events import Event
from nri_resmgr.stub.model import Container, Pod
from nri_resmgr.values import ResmgrError


class DecisionObservers:
    """Calls all observers, in order, after the reply."""

    def __init__(self, observers: Sequence[DecisionObserver]) -> None:
        self._observers = observers

    def decided(self, event: Event, decision: PolicyDecision) -> None:
        """Report that an event was decided."""
        after_reply(self._decided, event, decision)

    def refused(
        self, error: ResmgrError, pod: Pod, container: Container | None = None
    ) -> None:
        """Report that a request was refused."""
        names = (pod.namespace, pod.name, container.name if container else "")
        after_reply(self._refused, "/".join(name for name in names if name), error)

    def configured(self, config: PolicyConfig) -> None:
        """Report that another configuration, or machine, is in force."""
        after_reply(self._configured, config)

    def _decided(self, event: Event, decision: PolicyDecision) -> None:
        for observer in self._observers:
            observer.decided(event, decision)
        # Here no request waits for it.
        collect_if_due()

    def _refused(self, title: str, error: ResmgrError) -> None:
        for observer in self._observers:
            observer.refused(title, error)

    def _configured(self, config: PolicyConfig) -> None:
        for observer in self._observers:
            observer.configured(config)
