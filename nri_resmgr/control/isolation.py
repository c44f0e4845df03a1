"""The isolation of containers, as JSON data and as sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from nri_resmgr.app.host_settings.wanted import use_in_force
from nri_resmgr.app.observers.policy_in_force import PolicySnapshot
from nri_resmgr.classes.isolation.aspects import (
    BY_CGROUP,
    KEYS,
    Aspect,
    Isolation,
    aspects_of,
    isolations_of,
)
from nri_resmgr.classes.isolation.requests import Isolated
from nri_resmgr.control.daemon_view import DaemonView
from nri_resmgr.policy.events import NO_PIN, ContainerSpec
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.values.documents import JsonObject

if TYPE_CHECKING:  # heavy; few nodes have host settings
    from nri_resmgr.app.host_settings.report import Round

_IDLE: Final = {
    "enable": "all idle states are allowed",
    "disable": "no idle states except polling",
}


def isolated_of(
    use: HostUse, snapshot: PolicySnapshot, last: Round | None
) -> Iterator[JsonObject]:
    """Yield the data of each isolated container."""
    for one in sorted(
        use.isolated, key=lambda one: snapshot.specs[one.container].title
    ):
        yield {
            "container": snapshot.specs[one.container].title,
            "cpus": str(one.cpus),
            "isolations": [
                {
                    "what": each.what.value,
                    "setting": each.setting,
                    "cpus": str(each.cpus),
                    "problem": _problem(one, each.what, last),
                }
                for each in _isolations(one, snapshot)
            ],
        }


def isolation_sentences(
    spec: ContainerSpec, snapshot: PolicySnapshot, daemon: DaemonView
) -> Iterator[str]:
    """Yield the isolation of a container, or why its annotations have no effect."""
    request, policy, host = spec.preferences.isolation, daemon.policy, daemon.host
    if request is None or not aspects_of(request):
        return
    isolated = use_in_force(policy).isolated
    one = next((one for one in isolated if one.container == spec.id), None)
    if one is None:
        why = "it has no exclusive CPUs"
        if not policy.config.isolation:
            why = "spec.isolationAnnotations is false"
        keys = ", ".join(_key(what, spec) for what in aspects_of(request))
        yield f"not isolated in spite of {keys}: {why}"
        return
    last = host.applier.report.last if host and host.applier else None
    for each in _isolations(one, snapshot):
        problem = _problem(one, each.what, last)
        suffix = f"; not in force: {problem}" if problem else ""
        yield f"{_sentence(each)}, by annotation {_key(each.what, spec)}{suffix}"


def _isolations(one: Isolated, snapshot: PolicySnapshot) -> Iterator[Isolation]:
    pin = snapshot.pins.get(one.container, NO_PIN)
    return isolations_of(one, pin.cpus, snapshot.machine)


def _problem(one: Isolated, what: Aspect, last: Round | None) -> str:
    """Return why an aspect is not in force; files report their failures themselves."""
    if last is None:
        return ""
    if what in BY_CGROUP and one.container in last.waiting:
        return "its cgroup does not exist yet"
    if what is Aspect.LOAD_BALANCING:
        return last.ineffective.get(one.container, "")
    return ""


def _key(what: Aspect, spec: ContainerSpec) -> str:
    # A key with the name of the container has precedence.
    narrow = f"{KEYS[what]}/{spec.name}"
    return narrow if narrow in spec.pod_tags else KEYS[what]


def _sentence(one: Isolation) -> str:
    match one.what:
        case Aspect.LOAD_BALANCING:
            text = "no load balancing"
        case Aspect.QUOTA:
            return "no CPU quota"
        case Aspect.INTERRUPTS:
            text = "no interrupts except claimed ones"
        case Aspect.C_STATES:
            limit = one.setting.removeprefix("max_latency:")
            short = (
                f"only idle states with an exit latency of at most {limit} microseconds"
            )
            text = _IDLE.get(one.setting, short)
        case Aspect.GOVERNOR:
            text = f"governor {one.setting}"
        case Aspect.SHARED_CPUS:
            text = "shared CPUs in addition to the exclusive ones, no CPU quota"
    return f"CPU {one.cpus or 'none'}: {text}"
