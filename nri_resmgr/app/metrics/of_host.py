"""Metrics of what a policy wants of its host, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from nri_resmgr.app.metrics import table_of_host as table
from nri_resmgr.app.metrics.text import Series, single
from nri_resmgr.policy.host_use import HostUse

if TYPE_CHECKING:  # few nodes have any
    from nri_resmgr.app.background.reconciler import Reconciler
    from nri_resmgr.app.host_settings.report import HostReport
    from nri_resmgr.app.host_settings.settings import HostSettings


def series_of_host(
    use: HostUse, host: Reconciler[HostSettings] | None
) -> Iterator[Series]:
    """Yield what `metric_table_of_host` has.

    Args:
        use: What the policy wants.
        host: Applies it; None where there is no daemon.
    """
    classes = {(name,): len(cpus) for name, cpus in use.cpu_classes.items()}
    yield Series(table.CLASS_CPUS, classes)
    if use.isolated:
        from nri_resmgr.classes.isolation.aspects import aspects_of  # few nodes

        whats = (what for one in use.isolated for what in aspects_of(one.request))
        isolated = Counter((what.value,) for what in whats)
        yield Series(table.ISOLATED, isolated)
    if host is None:
        return
    why_not = host.problem
    if host.applier is not None:
        report = host.applier.report
        yield from _of_report(report)
        why_not = why_not or report.why_not
    if host.applier is not None or why_not:
        yield single(table.HOST_FOLLOWED, int(not why_not))


def _of_report(report: HostReport) -> Iterator[Series]:
    last = report.last
    yield single(table.INEFFECTIVE, len(last.ineffective))
    yield Series(
        table.INTERRUPTS,
        {
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
