"""The next series of values that is written to cgroups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from nri_resmgr.app.running.containers import DeliveredContainers, reference_of
from nri_resmgr.app.running.partitions import Partitions
from nri_resmgr.app.running.series import PinWrite
from nri_resmgr.app.running.waiting import WaitingPins
from nri_resmgr.policy.events import Pin
from nri_resmgr.values import NO_CPUS

# Some 50 ms. The thread leaves the interpreter free with each write, so that requests
# pass; what they decide is written in the next series.
_AT_ONCE: Final = 500


def next_series(
    waiting: WaitingPins, containers: DeliveredContainers, partitions: Partitions
) -> Sequence[PinWrite]:
    """Take the next writes from what waits; without any, what is to be compared.

    The pins are those of now: a later decision may have changed them since.
    """
    if waiting.changed:
        return _take_changed(waiting, containers, partitions)
    checks = waiting.take_checks(_AT_ONCE)
    return list(_writes(containers, partitions, checks, checks))


def _take_changed(
    waiting: WaitingPins, containers: DeliveredContainers, partitions: Partitions
) -> Sequence[PinWrite]:
    writes = list(_writes(containers, partitions, waiting.changed))
    loses = {one.cgroup.id: containers[one.cgroup.id].loses(one.pin) for one in writes}
    # First those that lose CPUs, so that no CPU is ever shared by mistake.
    writes.sort(key=lambda one: not loses[one.cgroup.id])
    due = writes[:_AT_ONCE]
    # Others have ended, or are not pinned any more.
    waiting.keep_changed([one.cgroup.id for one in writes])
    waiting.take(one.cgroup.id for one in due)
    return due


def _writes(
    containers: DeliveredContainers,
    partitions: Partitions,
    keys: Iterable[str],
    checks: Mapping[str, bool] = {},
) -> Iterator[PinWrite]:
    entries = containers.entries()
    kept_off, expected = partitions.kept_off(), partitions.expected()
    for key in keys:
        entry, pin, one = entries.get(key), containers.wanted(key), containers.get(key)
        if entry is None or not pin or one is None:
            continue
        one.begin_write()
        is_check, change, known_cpus = key in checks, pin, NO_CPUS
        if one.in_force is not None and not (is_check or one.by_partition):
            change = pin.since(one.in_force)
            if change.cpus:
                known_cpus = one.in_force.cpus
            change = change or pin
        yield PinWrite(
            reference_of(entry),
            pin,
            Pin(cpus=change.cpus, shares=change.shares),  # nodes follow
            one.has_started,
            known_cpus,
            is_check,
            checks.get(key, False),
            kept_off,
            expected,
        )
