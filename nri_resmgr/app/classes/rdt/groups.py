"""Applier of RDT classes: groups as configured, with the running containers in them."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

import attrs

from nri_resmgr.app.classes.members import Member, members_of
from nri_resmgr.app.classes.placed import rdt_choice
from nri_resmgr.app.classes.rdt.host import RdtHost
from nri_resmgr.app.classes.rdt.writer import RdtWriter
from nri_resmgr.app.observers.policy_in_force import PolicyInForce
from nri_resmgr.config.rdt import RdtUse
from nri_resmgr.policy.events import (
    ContainerSpec,
    Event,
    PodStopped,
    Started,
    Synchronized,
    Updated,
)

# Needed because a process that the runtime adds to a running container starts in the
# class that the container was created with.
PERIOD: Final = 30.0  # seconds between two comparisons of all containers


class RdtGroups:
    """Applies RDT classes; an `Applier`."""

    def __init__(
        self,
        subject: PolicyInForce,
        host: RdtHost,
        writer: RdtWriter,
        period: float = PERIOD,
    ) -> None:
        self.host = host
        self.writer = writer
        self._period = period
        self._subject = subject
        self._is_configured = True  # since the last step
        self._are_all_due = True
        self._started: set[str] = set()
        self._pods: dict[str, str] = {}

    @property
    def period(self) -> float | None:
        """Seconds until the next comparison."""
        return self.host.problems.period(self._period)

    def configured(self) -> None:
        """Have the next step make the groups again."""
        self.host.unsettle()
        self._is_configured = self._are_all_due = True

    def note(self, event: Event) -> bool:
        """Note started containers and stopped pods; return whether a step is due."""
        match event:
            case Started(container):
                self._started.add(container)
            case Updated(spec):
                self._started.add(spec.id)  # an adjustment may have changed its class
            case Synchronized():
                self._are_all_due = True
            case PodStopped(pod):
                # The step removes its monitoring group.
                return self._pods.pop(pod, None) is not None
            case _:
                return False
        return True

    def next_step(self, *, looks: bool) -> RdtStep:
        """Return the due containers; all of them if it *looks*."""
        use = self._subject.config.rdt
        members = self._members(use)
        are_all_due = looks or self._are_all_due
        started = tuple(one for one in members if one.reference.id in self._started)
        step = RdtStep(
            groups=self,
            use=use,
            members=members,
            due=members if are_all_due else started,
            pods=frozenset(self._pods.values()),
            is_configured=self._is_configured,
        )
        self._is_configured = self._are_all_due = False
        self._started.clear()
        return step

    def restore(self) -> None:
        """Remove the groups made here, and restore changed ones of others."""
        self.writer.restore()

    def _members(self, use: RdtUse | None) -> tuple[Member, ...]:
        if use is None:
            return ()
        subject = self._subject
        policy, state = subject.policy, subject.state
        if self._is_configured:
            self._pods.clear()  # the filters may be others
        for entry in state.ledger.entries.values():
            if _is_monitored(entry.spec, use):
                self._pods[entry.spec.pod] = entry.spec.pod_uid
        return tuple(
            members_of(
                subject,
                lambda spec: rdt_choice(spec, use, policy, state),
                lambda spec: _is_monitored(spec, use),
            )
        )


def _is_monitored(spec: ContainerSpec, use: RdtUse) -> bool:
    pods = use.pods
    return (
        use.monitors
        and bool(spec.pod_uid)
        and (
            not pods.namespaces
            or any(fnmatchcase(spec.namespace, one) for one in pods.namespaces)
        )
        and all(spec.pod_labels.get(key) == text for key, text in pods.labels.items())
    )


@attrs.define(eq=False)
class RdtStep:
    """Configuration and containers at one moment.

    Attributes:
        due: Containers whose threads are to be moved.
        pods: Names of the monitoring groups of present pods.
        is_configured: Whether the configuration is new.
    """

    groups: RdtGroups
    use: RdtUse | None
    members: tuple[Member, ...]
    due: tuple[Member, ...]
    pods: frozenset[str]
    is_configured: bool

    def apply(self) -> None:
        """Make the groups if they are not as configured, and move containers."""
        use, writer, host = self.use, self.groups.writer, self.groups.host
        host.problems.keep_only({one.title for one in self.members})
        for gone in host.before.keys() - {one.reference.id for one in self.members}:
            del host.before[gone]
        if self.is_configured or writer.is_due(use):
            writer.set_up(use, self.members)
        if use is not None:
            writer.move(self.due)
            writer.look()
            writer.prune(self.pods if use.monitors else ())

    async def report(self) -> None:
        """Do nothing: the writer has reported its problems."""
