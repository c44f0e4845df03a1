"""CPU classes, files and interrupts of the host as JSON data, wanted and found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from nri_resmgr.app.host_settings.wanted import use_in_force
from nri_resmgr.app.observers.policy_in_force import PolicySnapshot
from nri_resmgr.classes.cpu.facts import CPU_ROOT, CpuKnobFacts
from nri_resmgr.control.daemon_view import DaemonView
from nri_resmgr.control.isolation import isolated_of
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.values import CpuSet
from nri_resmgr.values.documents import JsonObject

if TYPE_CHECKING:  # heavy; few nodes have host settings
    from nri_resmgr.app.host_settings.report import HostReport, Round

_POLICY_FILES: Final = (
    "scaling_governor",
    "energy_performance_preference",
    "scaling_min_freq",
    "scaling_max_freq",
)
_UNCORE_FILES: Final = ("min_freq_khz", "max_freq_khz")


def host_settings_of(daemon: DaemonView, snapshot: PolicySnapshot) -> JsonObject | None:
    """Describe CPU classes and the settings of the host; None if there are none."""
    host, use = daemon.host, use_in_force(daemon.policy)
    report = host.applier.report if host and host.applier else None
    last = report.last if report else None
    # Files that could not be restored are shown after everything else has ended.
    if use.is_idle and not (report and report.failing):
        return None
    problem = host.problem if host else ""
    if report is not None:
        problem = problem or report.why_not
    elif not problem:
        problem = "the first round has not run yet"
    found: JsonObject = {
        "applied": not problem,
        "problem": problem,
        "classes": list(_classes(use, snapshot, last)),
        "isolated": list(isolated_of(use, snapshot, last)),
    }
    return found | _report_data(report)


def _classes(
    use: HostUse, snapshot: PolicySnapshot, last: Round | None
) -> Iterator[JsonObject]:
    for name, cpus in sorted(use.cpu_classes.items()):
        yield {
            "name": name,
            "cpus": str(cpus),
            "containers": sorted(
                spec.title
                for key, spec in snapshot.specs.items()
                if key in snapshot.pins and not snapshot.pins[key].cpus.isdisjoint(cpus)
            ),
            "settings": list(_settings(cpus, last)) if last else [],
        }


def _settings(cpus: CpuSet, last: Round) -> Iterator[JsonObject]:
    """Yield the settings of some CPUs: each value that any of them has."""
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
            for name in _POLICY_FILES:
                yield name, f"{policy.folder}/{name}"
    for group in facts.idle:
        for cpu in group.cpus & cpus:
            for number, state in enumerate(group.names):
                file = f"cpuidle/state{number}/disable"
                yield f"{state} disable", f"{CPU_ROOT}/cpu{cpu}/{file}"
    for domain in facts.uncore:
        if not domain.cpus.isdisjoint(cpus):
            for name in _UNCORE_FILES:
                yield f"uncore {name}", f"{domain.folder}/{name}"


def _report_data(report: HostReport | None) -> JsonObject:
    """Describe the last round; empty before the first one."""
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
            "notUpdated": last.irqbalance.why,
        },
        "speedSelect": list(_punits(last)),
    }


def _punits(last: Round) -> Iterator[JsonObject]:
    if last.plan.punits:
        # Late: large, and few machines have Intel Speed Select.
        from nri_resmgr.host.speed_select.knobs import describe

        for one in last.plan.punits:
            yield {"punit": f"{one.package}/{one.id}", "wanted": describe(one)}
