"""What a policy wants of its host's own settings, and what these are, as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from nri_resmgr.app.host_settings.wanted import use_in_force
from nri_resmgr.classes.cpu.facts import CPU_ROOT, CpuKnobFacts
from nri_resmgr.control.containers import Data, View
from nri_resmgr.control.subject import Subject
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.values import CpuSet

if TYPE_CHECKING:  # few nodes have any
    from nri_resmgr.app.host_settings.report import HostReport, Round

_OF_POLICY: Final = (
    "scaling_governor",
    "energy_performance_preference",
    "scaling_min_freq",
    "scaling_max_freq",
)
_OF_UNCORE: Final = ("min_freq_khz", "max_freq_khz")


def host_settings_of(subject: Subject, view: View) -> Data | None:
    """Say which CPUs are in which class, and how the host is set; None for nothing."""
    host, use = subject.host, use_in_force(subject.policy)
    report = host.applier.report if host and host.applier else None
    last = report.last if report else None
    if use.is_idle and not (report and report.failing):
        return None
    why_not = host.problem if host else ""
    if report is not None:
        why_not = why_not or report.why_not
    elif not why_not:
        why_not = "nothing runs yet"
    found: Data = {
        "followed": not why_not,
        "whyNot": why_not,
        "classes": list(_classes(use, view, last)),
        "isolated": list(_isolated(use, view, subject, last)),
    }
    return found | _of_report(report)


def _classes(use: HostUse, view: View, last: Round | None) -> Iterator[Data]:
    for name, cpus in sorted(use.cpu_classes.items()):
        yield {
            "name": name,
            "cpus": str(cpus),
            "containers": sorted(
                spec.title
                for key, spec in view.specs.items()
                if key in view.pins and not view.pins[key].cpus.isdisjoint(cpus)
            ),
            "settings": list(_settings(cpus, last)) if last else [],
        }


def _isolated(
    use: HostUse, view: View, subject: Subject, last: Round | None
) -> Iterator[Data]:
    if use.isolated:
        from nri_resmgr.control.isolation import isolated_of  # few nodes have any

        yield from isolated_of(use, view, subject.policy.machine, last)


def _settings(cpus: CpuSet, last: Round) -> Iterator[Data]:
    """Yield what is set for some CPUs: each value that any of them has."""
    wanted: dict[str, set[str]] = {}
    found: dict[str, set[str]] = {}
    files = last.plan.files
    for what, path in _paths(cpus, last.facts.cpus):
        if path in files:
            wanted.setdefault(what, set()).add(files[path])
            found.setdefault(what, set()).add(last.seen.get(path, ""))
    for what, values in wanted.items():
        yield {"what": what, "wanted": sorted(values), "found": sorted(found[what])}


def _paths(cpus: CpuSet, facts: CpuKnobFacts) -> Iterator[tuple[str, str]]:
    for policy in facts.policies:
        if not policy.cpus.isdisjoint(cpus):
            for name in _OF_POLICY:
                yield name, f"{policy.folder}/{name}"
    for alike in facts.idle:
        for cpu in alike.cpus & cpus:
            for number, state in enumerate(alike.names):
                file = f"cpuidle/state{number}/disable"
                yield f"{state} disable", f"{CPU_ROOT}/cpu{cpu}/{file}"
    for domain in facts.uncore:
        if not domain.cpus.isdisjoint(cpus):
            for name in _OF_UNCORE:
                yield f"uncore {name}", f"{domain.folder}/{name}"


def _of_report(report: HostReport | None) -> Data:
    """Say what was done; nothing was, where there is no report."""
    if report is None:
        return {"files": None, "interrupts": None, "speedSelect": []}
    last = report.last
    placement = last.plan.placement
    return {
        "files": {
            "wanted": len(last.plan.files),
            "written": report.written,
            "restored": report.restored,
            "failures": report.failures,
            "failing": [
                {"path": one.path, "value": one.value, "why": one.why}
                for one in report.failing.values()
            ],
            "drifting": [
                {"path": one.path, "wanted": one.expected, "found": one.found}
                for one in report.drifting.values()
            ],
            "abandoned": sorted(report.abandoned),
        },
        "interrupts": {
            "placed": {str(key): str(cpus) for key, cpus in placement.cpus.items()},
            "unplaced": list(placement.unplaced),
            "refused": sorted(last.refused),
            "irqbalance": last.irqbalance.pid,
            "untold": last.irqbalance.why,
        },
        "speedSelect": list(_punits(last)),
    }


def _punits(last: Round) -> Iterator[Data]:
    if last.plan.punits:
        from nri_resmgr.host.speed_select.knobs import describe

        for one in last.plan.punits:
            yield {"punit": f"{one.package}/{one.id}", "wanted": describe(one)}
