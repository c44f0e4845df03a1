"""Why CPUs of a container are in the CPU class that they are in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nri_resmgr.config.cpu_classes import CpuClassUse
from nri_resmgr.control.containers import View
from nri_resmgr.control.subject import Subject
from nri_resmgr.policy.events import NO_PIN, ContainerSpec
from nri_resmgr.values import CpuSet


def host_sentences(spec: ContainerSpec, view: View, subject: Subject) -> Iterator[str]:
    """Say which classes a container's CPUs are in and why, and what of interrupts.

    Args:
        spec: The container; it is here.
        view: What holds now.
        subject: The daemon.
    """
    policy = subject.policy
    use = policy.policy.host_use(policy.state)
    cpus = view.pins.get(spec.id, NO_PIN).cpus
    if rules := policy.config.cpu_classes:
        for name, members in sorted(use.cpu_classes.items()):
            if its := members & cpus:
                why = _why(name, its, spec, view, rules)
                yield f"CPU {its}: CPU class {name}, {why}"
    if spec.preferences.irq and use.containers:
        wish = spec.preferences.irq
        yield f"interrupts follow annotation {wish.key}"


def _why(
    name: str, cpus: CpuSet, spec: ContainerSpec, view: View, rules: CpuClassUse
) -> str:
    labels = _labels(spec, view)
    if "cpu_class" in labels:  # it is in a balloon
        if labels["cpu_class"] == name:
            return f"by its balloon type, {labels['type']}"
        return "by idleCPUClass"
    if cpus.isdisjoint(view.exclusive):
        shared, reserved = rules.shared, rules.reserved
        is_reserved = name == reserved and name != shared
        return f"as {'reserved' if is_reserved else 'shared'} CPUs are"
    wish = spec.preferences.cpu_class
    if wish and wish.name == name:
        return f"by annotation {wish.key}"
    return "as CPUs that a container has to itself are"


def _labels(spec: ContainerSpec, view: View) -> Mapping[str, str]:
    found = (pool.labels for pool in view.pools if spec.id in pool.containers)
    return next(found, {})
