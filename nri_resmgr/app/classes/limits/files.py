"""Applier of adjusted CPU and memory limits to running containers."""

from __future__ import annotations

from typing import Final

import attrs
import msgspec

from nri_resmgr.app.classes.limits.values import (
    NO_LIMITS,
    UNLIMITED,
    LimitHost,
    Limits,
    adjusted_limits,
    wanted_limits,
    with_limits,
)
from nri_resmgr.app.observers.policy_in_force import UpdatingPolicy
from nri_resmgr.host.cgroups.finder import CgroupFinder, CgroupFolders
from nri_resmgr.host.cgroups.writes import write_cgroup_files
from nri_resmgr.host.knobs.files import WritableTree
from nri_resmgr.policy.events import ContainerSpec, Event, Synchronized, Updated
from nri_resmgr.policy.requests import DEFAULT_PERIOD
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.values import HostError
from nri_resmgr.values.cpu_weights import weight_for

PERIOD: Final = 10.0  # seconds until failed writes are tried again

_USAGE: Final = "memory.current"


class Change(msgspec.Struct, frozen=True):
    """The values that a container is to have, and those of them that are new."""

    spec: ContainerSpec
    wanted: Limits
    new: Limits


class LimitFiles:
    """Writes limits that adjustments change, and restores them; an `Applier`.

    Attributes:
        period: Seconds until failed writes are tried again.
    """

    def __init__(
        self,
        subject: UpdatingPolicy,
        host: LimitHost,
        tree: WritableTree,
        period: float = PERIOD,
    ) -> None:
        self.host = host
        self.tree = tree
        self.subject = subject
        self.period: float | None = period
        self._restored: dict[str, Limits] = {}  # until the runtime has them

    def configured(self) -> None:
        """Do nothing: no configuration has limits."""

    def note(self, event: Event) -> bool:
        """Return whether limits may have changed."""
        return isinstance(event, Synchronized | Updated)

    def next_step(self, *, looks: bool) -> LimitStep | None:  # noqa: ARG002 - every step compares
        """Return a step for containers whose limits are to change; None for none."""
        entries, applied = self.subject.state.ledger.entries, self.host.applied
        for gone in applied.keys() - entries.keys():
            del applied[gone]
        self.host.unsure &= entries.keys()
        changes = []
        for key, entry in entries.items():
            before = applied.get(key, NO_LIMITS)
            if before or entry.spec.adjusted is not None:
                wanted = self._wanted(entry.spec, before)
                is_unsure = key in self.host.unsure
                if new := wanted if is_unsure else wanted.since(before):
                    changes.append(Change(entry.spec, wanted, new))
        self.host.problems.keep_only({one.spec.title for one in changes})
        return LimitStep(self, tuple(changes)) if changes else None

    def update_of(self, container: str) -> ContainerUpdate | None:
        """Return the limits of a container for the runtime's record."""
        limits = self.host.applied.get(container) or self._restored.pop(container, None)
        if not limits:
            return None
        return with_limits(ContainerUpdate(container), limits).ignoring_failure()

    def finish(self, done: dict[str, Limits]) -> None:
        """Note written values, and have the runtime's record follow."""
        entries = self.subject.state.ledger.entries
        self.host.unsure -= done.keys()
        for key, wanted in done.items():
            entry = entries.get(key)
            kept = adjusted_limits(entry.spec) if entry else NO_LIMITS
            if kept:
                self.host.applied[key] = wanted
            else:
                self.host.applied.pop(key, None)
                self._restored[key] = wanted
        # Otherwise the runtime restores its old values with its next update.
        self.subject.updates.send(self.update_of, done)

    def restore(self) -> None:
        """Do nothing: the next process knows the adjustments of its containers."""

    def _wanted(self, spec: ContainerSpec, before: Limits) -> Limits:
        wanted = wanted_limits(spec, before)
        pin = self.subject.wanted(spec.id)
        if pin is not None and pin.shares:  # the policy's are delivered as such
            return msgspec.structs.replace(wanted, shares=before.shares)
        return wanted


@attrs.define(eq=False)
class LimitStep:
    """The limits that are to change at one moment."""

    files: LimitFiles
    changes: tuple[Change, ...]
    _done: dict[str, Limits] = attrs.field(factory=dict, init=False)

    def apply(self) -> None:
        """Write them; one that fails is tried again."""
        finder, problems = CgroupFinder(self.files.tree), self.files.host.problems
        for one in self.changes:
            spec = one.spec
            try:
                place = finder.find(spec.id, spec.cgroup, spec.pid)
                why = self._write(place, one, is_v2=finder.is_v2) if place else ""
            except HostError as error:
                why = str(error)
            if why:
                problems.fail(spec.title, why)
            else:
                problems.clear(spec.title)
                self._done[spec.id] = one.wanted

    async def report(self) -> None:
        """Have the runtime's record follow."""
        if self._done:
            self.files.finish(self._done)

    def _write(self, place: CgroupFolders, one: Change, *, is_v2: bool) -> str:
        tree, new = self.files.tree, one.new
        if is_v2 and new.memory not in (None, UNLIMITED):
            usage = (tree.read(f"{place.cpu}/{_USAGE}") or "").strip()
            if usage.isdecimal() and new.memory is not None and int(usage) > new.memory:
                # The kernel would kill its processes.
                return f"uses {usage} bytes, more than its new limit of {new.memory}"
        lines = _v2(new) if is_v2 else _v1(new)
        return "; ".join(map(str, write_cgroup_files(tree, place.cpu, lines)))


def _v2(new: Limits) -> dict[str, tuple[str, ...]]:
    lines: dict[str, tuple[str, ...]] = {}
    if new.shares is not None:
        lines["cpu.weight"] = (str(weight_for(new.shares)),)
    if new.quota is not None:
        quota = "max" if new.quota == UNLIMITED else str(new.quota)
        lines["cpu.max"] = (f"{quota} {DEFAULT_PERIOD}",)
    if new.memory is not None:
        memory = "max" if new.memory == UNLIMITED else str(new.memory)
        lines["memory.max"] = (memory,)
    return lines


def _v1(new: Limits) -> dict[str, tuple[str, ...]]:
    """Return the files of CPUs; memory limits are left to the runtime.

    They have to be changed together with that of swap, in an order that depends.
    """
    lines: dict[str, tuple[str, ...]] = {}
    if new.shares is not None:
        lines["cpu.shares"] = (str(new.shares),)
    if new.quota is not None:
        lines["cpu.cfs_period_us"] = (str(DEFAULT_PERIOD),)
        lines["cpu.cfs_quota_us"] = (str(new.quota),)
    return lines
