"""What is isolated of containers, as plain data and as sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from nri_resmgr.app.host_settings.wanted import use_in_force
from nri_resmgr.classes.isolation.aspects import (
    BY_CGROUP,
    KEYS,
    Aspect,
    Isolation,
    aspects_of,
    isolations_of,
)
from nri_resmgr.classes.isolation.requests import Isolated
from nri_resmgr.control.containers import Data, View
from nri_resmgr.control.subject import Subject
from nri_resmgr.policy.events import NO_PIN, ContainerSpec
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.topology import Machine

if TYPE_CHECKING:  # few nodes have any
    from nri_resmgr.app.host_settings.report import Round

_IDLE: Final = {
    "enable": "all idle states are allowed",
    "disable": "no idle states but polling",
}


def isolated_of(
    use: HostUse, view: View, machine: Machine, last: Round | None
) -> Iterator[Data]:
    """Yield a row for each isolated container.

    Args:
        use: What the policy wants.
        view: What holds now.
        machine: Where this is.
        last: The last round; None before the first one.
    """
    for one in sorted(use.isolated, key=lambda one: view.specs[one.container].title):
        found = _isolations(one, view, machine)
        yield {
            "container": view.specs[one.container].title,
            "cpus": str(one.cpus),
            "isolations": [
                {
                    "what": each.what.value,
                    "setting": each.setting,
                    "cpus": str(each.cpus),
                    "whyNot": _why_not(one, each.what, last),
                }
                for each in found
            ],
        }


def isolation_sentences(
    spec: ContainerSpec, view: View, subject: Subject
) -> Iterator[str]:
    """Say what is isolated of a container, or why nothing is that it asks for.

    Args:
        spec: The container; it is here.
        view: What holds now.
        subject: The daemon.
    """
    wish, policy, host = spec.preferences.isolation, subject.policy, subject.host
    if wish is None or not aspects_of(wish):
        return
    isolated = use_in_force(policy).isolated
    one = next((one for one in isolated if one.container == spec.id), None)
    if one is None:
        why = "it has no whole CPUs to itself"
        if not policy.config.isolation:
            why = "spec.isolationAnnotations is off"
        keys = ", ".join(_key(what, spec) for what in aspects_of(wish))
        yield f"not isolated as {keys} would have it: {why}"
        return
    last = host.applier.report.last if host and host.applier else None
    for each in _isolations(one, view, policy.machine):
        why = _why_not(one, each.what, last)
        lacks = f"; not so now: {why}" if why else ""
        yield f"{_said(each)}, by annotation {_key(each.what, spec)}{lacks}"


def _isolations(one: Isolated, view: View, machine: Machine) -> Iterator[Isolation]:
    return isolations_of(one, view.pins.get(one.container, NO_PIN).cpus, machine)


def _why_not(one: Isolated, what: Aspect, last: Round | None) -> str:
    """Say why something is not in force; what of its files fails is told of these."""
    if last is None:
        return ""
    if what in BY_CGROUP and one.container in last.waiting:
        return "its cgroup is not there yet"
    if what is Aspect.LOAD_BALANCING:
        return last.ineffective.get(one.container, "")
    return ""


def _key(what: Aspect, spec: ContainerSpec) -> str:
    own = f"{KEYS[what]}/{spec.name}"
    return own if own in spec.pod_tags else KEYS[what]


def _said(one: Isolation) -> str:
    match one.what:
        case Aspect.LOAD_BALANCING:
            said = "no load balancing"
        case Aspect.QUOTA:
            return "no CPU quota"
        case Aspect.INTERRUPTS:
            said = "no interrupts but those that are claimed"
        case Aspect.C_STATES:
            limit = one.setting.removeprefix("max_latency:")
            short = f"only idle states that end within {limit} microseconds"
            said = _IDLE.get(one.setting, short)
        case Aspect.GOVERNOR:
            said = f"governor {one.setting}"
        case Aspect.SHARED_CPUS:
            said = "shared with others, besides its own, without a CPU quota"
    return f"CPU {one.cpus or 'none'}: {said}"
