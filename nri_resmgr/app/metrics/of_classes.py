"""Metrics of RDT and block I/O classes, looked up when somebody asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from nri_resmgr.app.classes.blockio.setter import blockio_choice
from nri_resmgr.app.classes.hosts import ClassHosts
from nri_resmgr.app.classes.members import ActivePolicy, members_of
from nri_resmgr.app.classes.rdt.host import RdtHost
from nri_resmgr.app.classes.rdt.setter import rdt_choice
from nri_resmgr.app.metrics import table_of_classes as table
from nri_resmgr.app.metrics.text import Series
from nri_resmgr.host.resctrl import Count
from nri_resmgr.values import HostError


def series_of_classes(subject: ActivePolicy, hosts: ClassHosts) -> Iterator[Series]:
    """Yield who has which class, and what went wrong, of kinds that are switched on.

    Args:
        subject: Whose containers they are.
        hosts: The classes on the host.
    """
    config, policy, state = subject.config, subject.policy, subject.state
    counts: Counter[tuple[str, str]] = Counter()
    problems = []
    if (rdt := config.rdt) is not None:
        problems.append(hosts.rdt.problems)
        members = members_of(subject, lambda spec: rdt_choice(spec, rdt, policy, state))
        counts.update(("rdt", one.name) for one in members if one.choice)
    if (blockio := config.blockio) is not None:
        problems.append(hosts.blockio.problems)
        members = members_of(
            subject, lambda spec: blockio_choice(spec, blockio, policy, state)
        )
        counts.update(("blockio", one.name) for one in members if one.choice)
    if config.memory_qos is not None or config.memory_policy is not None:
        from nri_resmgr.app.classes.memory.containers import memory_owners

        counts.update((one.kind, one.name) for one in memory_owners(subject))
    if problems or counts:
        yield Series(table.CLASS_CONTAINERS, counts)
    if problems:
        rows = [((one.kind,), one) for one in problems]
        yield Series(table.CLASSES_DROPPED, {key: one.dropped for key, one in rows})
        yield Series(table.CLASS_FAILURES, {key: one.failures for key, one in rows})
        yield Series(table.CLASSES_FAILING, {k: len(one.present) for k, one in rows})


def series_of_counters(host: RdtHost) -> tuple[Series, ...]:
    """Read the counters of the hardware: some files for each group, for a thread."""
    try:
        counts = host.control.counters() if host.control else ()
    except HostError as error:
        host.problems.fail("counters", str(error))
        return ()
    host.problems.clear("counters")
    return tuple(_of_counters(counts))


def _of_counters(counts: tuple[Count, ...]) -> Iterator[Series]:
    for what, ours, theirs in (
        ("occupancy", table.OCCUPANCY, table.NP_OCCUPANCY),
        ("local", table.LOCAL, table.NP_LOCAL),
        ("total", table.TOTAL, table.NP_TOTAL),
    ):
        found = {
            (one.group or "system/default", one.monitor, str(one.cache)): number
            for one in counts
            if (number := getattr(one, what)) is not None
        }
        yield Series(ours, found)
        yield Series(theirs, {(c, g, m): n for (g, m, c), n in found.items()})
