"""Pins as updates of existing containers, and back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import NO_PIN, Pin
from nri_resmgr.stub.model import (
    LinuxContainerUpdate,
    LinuxCpu,
    LinuxResources,
)
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.values import BadListFormat, CpuSet, NodeSet


def updates_of(updates: Sequence[PinUpdate]) -> tuple[ContainerUpdate, ...]:
    """Make updates of existing containers; equal pins share the content."""
    return tuple(
        [
            ContainerUpdate(
                one.container,
                _of_update(one.pin.cpus.bits, one.pin.mems.bits, one.pin.shares),
            )
            for one in updates
        ]
    )


def pin_in(resources: LinuxResources | None) -> Pin:
    """Return the pin that resources of the runtime have; empty without one."""
    cpu = resources.cpu if resources else None
    if not cpu:
        return NO_PIN
    shares = cpu.shares or 0
    try:
        return _pin_of(cpu.cpus, cpu.mems, shares)
    except BadListFormat:
        # Not written by this plugin, and about to be replaced.
        return Pin(shares=shares)


# Cached: nearly every reply has the pin of a shared pool. By masks, which hash fast.
@lru_cache(maxsize=256)
def resources_of(cpus: int, mems: int, shares: int) -> LinuxResources:
    """Return resources that set these masks and shares; 0 leaves a value as it is."""
    # An empty field is not sent and leaves the value as it is.
    found = LinuxCpu(
        cpus=str(CpuSet(cpus)), mems=str(NodeSet(mems)), shares=shares or None
    )
    return LinuxResources(cpu=found)


@lru_cache(maxsize=256)
def _of_update(cpus: int, mems: int, shares: int) -> LinuxContainerUpdate:
    return LinuxContainerUpdate(resources_of(cpus, mems, shares))


@lru_cache(maxsize=1024)
def _pin_of(cpus: str, mems: str, shares: int) -> Pin:
    # Cached: many containers have the same pin, and most new ones only shares.
    return Pin(CpuSet.parse(cpus), NodeSet.parse(mems), shares)
