"""Applier of limits of fast memory, which annotations ask for."""

from __future__ import annotations

from typing import Final, Protocol

import attrs
import msgspec

from nri_resmgr.app.classes.memory.top_tier_host import TopTierHost
from nri_resmgr.app.observers.policy_in_force import PolicyInForce
from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.host.cgroups.top_tier import (
    TOP_TIER_FILE,
    TopTierCgroups,
    is_same_limit,
)
from nri_resmgr.host.knobs.files import WritableTree
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import (
    ContainerSpec,
    Event,
    Started,
    Synchronized,
    Updated,
)
from nri_resmgr.values import HostError

log = Logger(__name__)

PERIOD: Final = 30.0  # seconds between two comparisons of all limits

_KEY: Final = "toptierlimit"
_NO_LIMIT: Final = -1  # as the kernel writes and reads it
_NO_FILE: Final = (
    f"this kernel has no {TOP_TIER_FILE}; only kernels with the patches for it limit "
    "memory by tier"
)


class EffectReport(Protocol):
    """Takes annotations without effect as events; the `History` does."""

    def ineffective(self, title: str, why: str) -> None:
        """See `DecisionObserver.ineffective`."""


class Limited(msgspec.Struct, frozen=True):
    """A container with a limit, in bytes."""

    spec: ContainerSpec
    limit: int


class TopTierLimits:
    """Writes the limits of containers, and compares them; an `Applier`."""

    def __init__(
        self,
        subject: PolicyInForce,
        host: TopTierHost,
        tree: WritableTree,
        reports: EffectReport,
        period: float = PERIOD,
    ) -> None:
        self.host = host
        self.tree = tree
        self.reports = reports
        self._period = period
        self._subject = subject

    @property
    def period(self) -> float | None:
        """Seconds until the next comparison."""
        return self.host.problems.period(self._period)

    def configured(self) -> None:
        """Do nothing: annotations alone ask for limits."""

    def note(self, event: Event) -> bool:
        """Return whether a container was started or changed, or all were listed."""
        if isinstance(event, Synchronized | Updated):
            return True
        if not isinstance(event, Started):
            return False
        entry = self._subject.state.ledger.entries.get(event.id)
        return entry is not None and (entry.spec.preferences.top_tier_limit is not None)

    def next_step(self, *, looks: bool) -> TopTierStep | None:  # noqa: ARG002 - every step compares
        """Return a step for all containers with a limit; None for none."""
        entries = self._subject.state.ledger.entries
        self.host.keep_only(entries.keys())
        found = tuple(
            Limited(entry.spec, _NO_LIMIT if limit is None else limit)
            for entry in entries.values()
            if (limit := entry.spec.preferences.top_tier_limit) is not None
            # An adjustment that is gone had a limit.
            or entry.spec.id in self.host.applied
        )
        self.host.problems.keep_only({one.spec.title for one in found})
        return TopTierStep(self, found) if found else None

    def restore(self) -> None:
        """Do nothing: the files end with their containers."""


@attrs.define(eq=False)
class TopTierStep:
    """The containers with a limit at one moment."""

    limits: TopTierLimits
    containers: tuple[Limited, ...]
    _without: list[Limited] = attrs.field(factory=list, init=False)

    def apply(self) -> None:
        """Write the limits that are not in force."""
        cgroups, problems = TopTierCgroups(self.limits.tree), self.limits.host.problems
        for one in self.containers:
            try:
                why = self._apply(cgroups, one)
            except HostError as error:
                why = str(error)
            if why:
                problems.fail(one.spec.title, why)
            else:
                problems.clear(one.spec.title)

    async def report(self) -> None:
        """Report limits without effect, once per container."""
        host = self.limits.host
        for one in self._without:
            spec = one.spec
            if spec.id in host.ineffective:
                continue
            host.ineffective[spec.id] = why = _NO_FILE
            log.warning(
                "annotation.ineffective",
                pod=f"{spec.namespace}/{spec.pod_name}",
                container=spec.name,
                key=_KEY,
                why=why,
            )
            self.limits.reports.ineffective(spec.title, sentence_of(why))

    def _apply(self, cgroups: TopTierCgroups, one: Limited) -> str:
        """Write a limit if it is not in force; return why that failed."""
        spec, host = one.spec, self.limits.host
        folder = cgroups.folder_of(CgroupReference(spec.id, spec.cgroup, spec.pid))
        if not folder:
            return ""  # it does not run
        present = cgroups.limit_of(folder)
        if present is None:
            self._without.append(one)
            return ""
        if one.limit == _NO_LIMIT:
            failed = cgroups.set_limit(folder, one.limit)
            if not failed:
                host.applied.discard(spec.id)
            return "; ".join(map(str, failed))
        if is_same_limit(present, one.limit):
            host.applied.add(spec.id)
            return ""
        if spec.id in host.applied:
            log.warning(
                "toptier.drifted", title=spec.title, wanted=one.limit, found=present
            )
        failed = cgroups.set_limit(folder, one.limit)
        if failed:
            return "; ".join(map(str, failed))
        # The next comparison confirms it.
        host.applied.add(spec.id)
        return ""


def sentence_of(why: str) -> str:
    """Say that the annotation has no effect."""
    return f"annotation {_KEY} has no effect: {why}"
