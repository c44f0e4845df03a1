"""Metrics of classes, host settings and verification, computed at each scrape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from nri_resmgr.app.classes.members import members_of
from nri_resmgr.app.classes.memory.containers import memory_owners
from nri_resmgr.app.classes.placed import blockio_choice, rdt_choice
from nri_resmgr.app.metrics import table
from nri_resmgr.app.metrics.text import Series, single
from nri_resmgr.app.observers.policy_in_force import PolicyInForce
from nri_resmgr.classes.isolation.aspects import aspects_of
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.values import HostError

if TYPE_CHECKING:  # few nodes have these
    from nri_resmgr.app.background.reconciler import Reconciler
    from nri_resmgr.app.classes.hosts import ClassHosts
    from nri_resmgr.app.classes.rdt.host import RdtHost
    from nri_resmgr.app.host_settings.report import HostReport
    from nri_resmgr.app.host_settings.settings import HostSettings
    from nri_resmgr.app.verification.verifier import Verification
    from nri_resmgr.host.resctrl import Count


def series_of_host(
    use: HostUse, host: Reconciler[HostSettings] | None
) -> Iterator[Series]:
    """Yield the CPU classes, isolation, interrupts and files of the host's settings."""
    classes = {(name,): len(cpus) for name, cpus in use.cpu_classes.items()}
    yield Series(table.CLASS_CPUS, classes)
    if use.isolated:
        aspects = (what for one in use.isolated for what in aspects_of(one.request))
        isolated = Counter((what.value,) for what in aspects)
        yield Series(table.ISOLATED, isolated)
    if host is None:
        return
    why_not = host.problem
    if host.applier is not None:
        report = host.applier.report
        yield from _of_host_report(report)
        why_not = why_not or report.why_not
    if host.applier is not None or why_not:
        yield single(table.HOST_APPLIED, int(not why_not))


def _of_host_report(report: HostReport) -> Iterator[Series]:
    last = report.last
    yield single(table.INEFFECTIVE, len(last.ineffective))
    yield Series(
        table.INTERRUPTS,
        {
            # The plan places refused ones as well.
            ("placed",): len(last.plan.placement.cpus.keys()) - len(last.refused),
            ("unplaced",): len(last.plan.placement.unplaced),
            ("refused",): len(last.refused),
        },
    )
    yield Series(
        table.HOST_FILES,
        {
            ("wanted",): len(last.plan.files),
            ("failed",): len(report.failing),
            ("drifted",): len(report.drifting),
            ("abandoned",): len(report.abandoned),
        },
    )
    yield Series(
        table.HOST_WRITES,
        {
            ("written",): report.written,
            ("restored",): report.restored,
            ("failed",): report.failures,
        },
    )
    yield single(table.HOST_DRIFT, report.drift)


def series_of_classes(subject: PolicyInForce, hosts: ClassHosts) -> Iterator[Series]:
    """Yield containers by class, and problems, of the kinds that are enabled."""
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
        counts.update((one.kind, one.name) for one in memory_owners(subject))
    if problems or counts:
        yield Series(table.CLASS_CONTAINERS, counts)
    if problems:
        rows = [((one.kind,), one) for one in problems]
        yield Series(table.CLASSES_DROPPED, {key: one.dropped for key, one in rows})
        yield Series(table.CLASS_FAILURES, {key: one.failures for key, one in rows})
        yield Series(table.CLASSES_FAILING, {k: len(one.present) for k, one in rows})


RDT_COUNTERS: Final = (
    *(table.OCCUPANCY, table.LOCAL, table.TOTAL),
    *(table.NP_OCCUPANCY, table.NP_LOCAL, table.NP_TOTAL),
)
"""Values that `series_of_rdt_counters` reads."""


def series_of_rdt_counters(host: RdtHost) -> tuple[Series, ...]:
    """Read the counters of the hardware: a few files per group, so use a thread."""
    try:
        counts = host.control.counters() if host.control else ()
    except HostError as error:
        host.problems.fail("counters", str(error))
        return ()
    host.problems.clear("counters")
    return tuple(_of_rdt_counters(counts))


def _of_rdt_counters(counts: tuple[Count, ...]) -> Iterator[Series]:
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


def series_of_verification(verification: Verification) -> Iterator[Series]:
    """Yield verdicts, repairs, and the duration of the last round."""
    counts = verification.counts()
    yield Series(table.VERDICTS, {(word.value,): n for word, n in counts.items()})
    yield single(table.DRIFT_REPAIRS, verification.repairs.sent)
    yield single(table.DRIFT_ABANDONED, verification.repairs.abandoned)
    if verification.rounds:
        yield single(table.VERIFIED, verification.ended / 1e9)
        yield single(table.VERIFICATION_SECONDS, verification.seconds)
