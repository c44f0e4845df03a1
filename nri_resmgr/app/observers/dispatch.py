"""Dispatch of decisions to their observers, once the reply is out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from nri_resmgr.app.observers.after_reply import DeferredWork, Steps
from nri_resmgr.app.observers.garbage import collect_if_due, keep_present
from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision, Subject
from nri_resmgr.config import PolicyConfig
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import Event, Synchronized
from nri_resmgr.stub.model import Container, Pod
from nri_resmgr.values import ResmgrError

log = Logger(__name__)

ObserverT = TypeVar("ObserverT")


class DecisionObservers:
    """Calls all observers, in order, after the reply.

    The observers of a decision are called when those of all earlier ones are done.
    """

    def __init__(self, observers: Sequence[DecisionObserver]) -> None:
        self._observers = [*observers]
        self._work = DeferredWork()

    def add(self, observer: DecisionObserver) -> None:
        """Call *observer* from now on, after the others."""
        self._observers.append(observer)

    def decided(self, event: Event, decision: PolicyDecision) -> None:
        """Report that an event was decided."""
        self._work.add(self._decided(event, decision))

    def refused(
        self, error: ResmgrError, pod: Pod, container: Container | None = None
    ) -> None:
        """Report that a request was refused."""
        name = container.name if container else ""
        subject = Subject(pod.namespace, pod.name, name, pod.uid)
        self._work.add(self._each(lambda one: one.refused(subject, error)))

    def configured(self, config: PolicyConfig) -> None:
        """Report that another configuration, or machine, is in force."""
        self._work.add(self._each(lambda one: one.configured(config)))

    def finish(self) -> None:
        """Report at once what is yet to be reported."""
        self._work.finish()

    def _decided(self, event: Event, decision: PolicyDecision) -> Iterator[None]:
        # Not after a change of the configuration, of which there may be many.
        is_node = isinstance(event, Synchronized) and bool(event.specs)
        for _ in self._each(lambda one: one.decided(event, decision)):
            if is_node:
                # What observers keep of a large node would be collected in one piece.
                keep_present()
            yield
        # Here no request waits for it.
        collect_if_due()

    def _each(
        self, report: Callable[[DecisionObserver], Steps | None]
    ) -> Iterator[None]:
        """Report to all observers; yield where requests may be answered."""
        for observer in self._observers:
            try:
                for _ in report(observer) or ():
                    yield
            except Exception as fault:  # noqa: BLE001 - logged
                # It was decided and replied; the other observers must see it, too.
                _log_fault(observer, fault)


def notify_each(
    observers: Iterable[ObserverT], notify: Callable[[ObserverT], object]
) -> None:
    """Notify observers; the failure of one is logged, and keeps it from no other."""
    for observer in observers:
        try:
            notify(observer)
        except Exception as fault:  # noqa: BLE001 - logged
            _log_fault(observer, fault)


def _log_fault(observer: object, fault: Exception) -> None:
    log.error("observer.failed", observer=type(observer).__name__, exc_info=fault)
