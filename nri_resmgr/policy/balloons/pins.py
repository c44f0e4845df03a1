"""What holds for a container: balloons in, pinning out."""

from __future__ import annotations

from nri_resmgr.policy.balloons.context import Ground
from nri_resmgr.policy.balloons.state import Balloon, BalloonsState, Seat
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin, pinning
from nri_resmgr.policy.requests import shares_of
from nri_resmgr.values import CpuSet


def pin_of(spec: ContainerSpec, state: BalloonsState, ground: Ground) -> Pin:
    """Say where a container may run and have its memory, and its weight there."""
    seat = state.seats[spec.id]
    if not seat.balloon:
        return NO_PIN
    cpus = visible(allowed_cpus(state.balloons[seat.balloon], state), seat, ground)
    return pin_on(cpus, spec, state, ground)


def pin_on(
    cpus: CpuSet, spec: ContainerSpec, state: BalloonsState, ground: Ground
) -> Pin:
    """Say the same of a container in a balloon, of whose CPUs it sees these."""
    bits, shares, mems = 0, 0, 0
    if ground.settings.pin_cpus:
        bits, shares = cpus.bits, shares_of(spec.request)
    promised = state.memory.grants.get(spec.id)
    if promised is not None and not spec.preferences.preserve_memory:
        mems = promised.zone.bits
    return pinning(bits, mems, shares)


def allowed_cpus(balloon: Balloon, state: BalloonsState) -> CpuSet:
    """Return a balloon's CPUs, and those of no balloon that it uses besides."""
    idle = balloon.reach.bits & state.free.bits
    return CpuSet(balloon.cpus.bits | idle) if idle else balloon.cpus


def visible(cpus: CpuSet, seat: Seat, ground: Ground) -> CpuSet:
    """Leave out the threads that a container is not to see."""
    return ground.one_per_core(cpus) if seat.hidden else cpus
