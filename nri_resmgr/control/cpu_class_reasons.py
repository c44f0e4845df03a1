"""Reasons for the CPU class of a container's CPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nri_resmgr.app.observers.policy_in_force import PolicySnapshot
from nri_resmgr.config.cpu_classes import CpuClassUse
from nri_resmgr.control.daemon_view import DaemonView
from nri_resmgr.policy.events import NO_PIN, ContainerSpec
from nri_resmgr.values import CpuSet


def host_sentences(
    spec: ContainerSpec, snapshot: PolicySnapshot, daemon: DaemonView
) -> Iterator[str]:
    """Yield the CPU classes of a container's CPUs and why, and its interrupts."""
    policy = daemon.policy
    use = policy.policy.host_use(policy.state)
    cpus = snapshot.pins.get(spec.id, NO_PIN).cpus
    if rules := policy.config.cpu_classes:
        for name, members in sorted(use.cpu_classes.items()):
            if shared := members & cpus:
                why = _why(name, shared, spec, snapshot, rules)
                yield f"CPU {shared}: CPU class {name}, {why}"
    if spec.preferences.irq and use.containers:
        yield f"interrupts by annotation {spec.preferences.irq.key}"


def _why(
    name: str,
    cpus: CpuSet,
    spec: ContainerSpec,
    snapshot: PolicySnapshot,
    rules: CpuClassUse,
) -> str:
    labels = _labels(spec, snapshot)
    if "cpu_class" in labels:  # of a balloon
        if labels["cpu_class"] == name:
            return f"by its balloon type, {labels['type']}"
        return "by idleCPUClass"
    if cpus.isdisjoint(snapshot.exclusive):
        shared, reserved = rules.shared, rules.reserved
        is_reserved = name == reserved and name != shared
        return f"as {'reserved' if is_reserved else 'shared'} CPUs"
    request = spec.preferences.cpu_class
    if request and request.name == name:
        return f"by annotation {request.key}"
    return "as exclusive CPUs"


def _labels(spec: ContainerSpec, snapshot: PolicySnapshot) -> Mapping[str, str]:
    found = (pool.labels for pool in snapshot.pools if spec.id in pool.containers)
    return next(found, {})
