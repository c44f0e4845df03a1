"""Reports annotations that the policy in force does not obey."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from nri_resmgr.app.observers.after_reply import Steps
from nri_resmgr.app.observers.dispatch import notify_each
from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.app.observers.policy_in_force import PolicyInForce
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import (
    ContainerSpec,
    Created,
    Event,
    Synchronized,
    Updated,
)
from nri_resmgr.policy.preferences import NO_PREFERENCES

if TYPE_CHECKING:
    from nri_resmgr.app.annotations.unobeyed import Unobeyed  # see `_unobeyed`

log = Logger(__name__)


class UnobeyedReport(DecisionObserver):
    """Reports annotations without effect, once per container and kind of policy.

    Strict ones refuse a new container, and are only reported of one that runs.

    Args:
        subject: The policy in force.
        observers: They are notified of each such annotation.
    """

    def __init__(
        self, subject: PolicyInForce, observers: Sequence[DecisionObserver]
    ) -> None:
        self._subject = subject
        self._observers = observers
        self._reported: dict[str, str] = {}  # kinds of policies by container id

    def check(self, spec: ContainerSpec) -> None:
        """Check the strict annotations of a new container.

        Raises:
            StrictlyUnobeyed: The policy in force does not obey one of them.
        """
        policy = self._subject.policy
        if policy.refuses_strict:
            for one in self._unobeyed(spec):
                if one.refuses:
                    raise one.refusal(spec.title or spec.id, policy.kind)

    def decided(self, event: Event, decision: PolicyDecision) -> Steps | None:
        """Report those of a new container, or of all."""
        entries = decision.state.ledger.entries
        if len(self._reported) > len(entries):
            for gone in self._reported.keys() - entries.keys():
                del self._reported[gone]
        match event:
            case Created() | Updated():
                self._report(event.spec)
            case Synchronized():
                return self._report_all([one.spec for one in entries.values()])
        return None

    def _report_all(self, specs: list[ContainerSpec]) -> Iterator[None]:
        for spec in specs:
            self._report(spec)
            yield

    def _report(self, spec: ContainerSpec) -> None:
        policy = self._subject.policy
        if self._reported.get(spec.id) == policy.kind:
            return
        for one in self._unobeyed(spec):
            self._reported[spec.id] = policy.kind
            log.warning(
                "annotation.ineffective",
                pod=f"{spec.namespace}/{spec.pod_name}",
                container=spec.name,
                key=one.key,
                why=f"{policy.kind} does not obey it",
            )
            sentence = one.sentence(policy.kind)
            notify_each(
                self._observers, partial(_note_ineffective, spec.title, sentence)
            )

    def _unobeyed(self, spec: ContainerSpec) -> tuple[Unobeyed, ...]:
        if spec.preferences is NO_PREFERENCES:
            return ()
        # Late: on the start path, and most pods have no such key.
        from nri_resmgr.app.annotations.unobeyed import unobeyed

        return unobeyed(spec.preferences, self._subject.policy.obeys)


def _note_ineffective(title: str, why: str, observer: DecisionObserver) -> None:
    observer.ineffective(title, why)
