"""What a container has besides its balloon: memory, and a scheduling class."""

from __future__ import annotations

from nri_resmgr.policy.balloons.choose_type import choose_type, is_left_alone
from nri_resmgr.policy.balloons.context import Ground
from nri_resmgr.policy.balloons.memory import promise, promise_again, request_of
from nri_resmgr.policy.balloons.pins import allowed_cpus
from nri_resmgr.policy.balloons.settings import BalloonsSettings
from nri_resmgr.policy.balloons.state import BalloonsState
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.mems import MemoryOffer
from nri_resmgr.policy.scheduling import SchedulingClass


def with_memory(
    spec: ContainerSpec, state: BalloonsState, ground: Ground
) -> tuple[BalloonsState, dict[str, None]]:
    """Promise memory to a container that is in a balloon.

    One that has some keeps its nodes, and counts for what it asks now.

    Returns:
        What holds then, and whose memory moved.
    """
    name = state.seats[spec.id].balloon
    if not name or not ground.type_of(state.balloons[name]).pin_memory:
        return state, {}
    offer = _offer(spec, name, state, ground)
    if offer is None:
        return state, {}
    moved = [one.id for one in offer.moved] if offer.widened else ()
    return state.promised(offer.ledger), dict.fromkeys(moved)


def scheduling_of(
    spec: ContainerSpec, settings: BalloonsSettings
) -> SchedulingClass | None:
    """Choose a container's scheduling class: its own wish, else that of its type."""
    name = spec.preferences.scheduling_class
    if not name and settings.scheduling_classes:
        if is_left_alone(spec, settings):
            return None
        name = choose_type(spec, settings).kind.scheduling_class
    return settings.scheduling_classes.get(name)


def _offer(
    spec: ContainerSpec, name: str, state: BalloonsState, ground: Ground
) -> MemoryOffer | None:
    kind, memory = ground.type_of(state.balloons[name]), state.memory
    cpus = allowed_cpus(state.balloons[name], state)
    if spec.id not in memory:
        return promise(spec, kind, cpus, memory, ground)
    known = memory.grants[spec.id]
    request = request_of(spec, kind, cpus, ground)
    if known.request.demand == request.demand:
        return None
    return promise_again(request, known.zone, memory.release(spec.id))
