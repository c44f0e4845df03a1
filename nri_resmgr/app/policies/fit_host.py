"""Whether a host can do what a configuration says of CPU classes and interrupts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nri_resmgr.classes.cpu.check import check
from nri_resmgr.classes.irq.interrupts import ALL, check_allowed
from nri_resmgr.config import BadSetting, PolicyConfig
from nri_resmgr.config.balloons import BalloonsConfig
from nri_resmgr.config.cpu_class_use import CpuClassUse
from nri_resmgr.host.interrupts import read_interrupts
from nri_resmgr.host.knobs.cpu import read_cpu_knobs
from nri_resmgr.host.tree import Tree
from nri_resmgr.topology import Machine
from nri_resmgr.values import PolicyError

Doubt = tuple[str, str]

_CLASSES: Final = "$.spec.cpuClasses"


def fit_host(config: PolicyConfig, machine: Machine, tree: Tree) -> tuple[Doubt, ...]:
    """Hold a configuration against a host.

    Args:
        config: What is said.
        machine: The host's.
        tree: The host.

    Returns:
        Path and reason of what it can do in part, or within limits.

    Raises:
        BadSetting: It cannot do something at all.
        HostError: A file cannot be read.
    """
    if isinstance(config, BalloonsConfig):
        _fit_claims(config, tree)
    if config.cpu_classes is None:
        return ()
    return tuple(_fit_classes(config.cpu_classes, machine, tree))


def _fit_classes(use: CpuClassUse, machine: Machine, tree: Tree) -> Iterator[Doubt]:
    for one in check(use.classes, read_cpu_knobs(tree, machine)):
        path = f"{use.paths.get(one.cpu_class, _CLASSES)}.{one.key}"
        why = f"{one.why} ({one.file})"
        if one.is_error:
            raise BadSetting(path, why)
        yield path, why


def _fit_claims(config: BalloonsConfig, tree: Tree) -> None:
    claims = [
        (f"{one.path}.irqClaim", one.interrupts.claim)
        for one in config.types
        if one.interrupts and one.interrupts.claim
    ]
    if not claims or config.interrupts == ALL:
        return
    interrupts = read_interrupts(tree)
    for path, patterns in claims:
        try:
            check_allowed(patterns, interrupts, config.interrupts)
        except PolicyError as error:
            raise BadSetting(path, str(error)) from error
