"""Advice in refusals: changes that would help, each tried before it is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, TypeAlias

from msgspec.structs import replace

from nri_resmgr.policy.advice import (
    ONE_BY_ONE,
    Change,
    Edit,
    at_most,
    most_cpus,
    sentence,
    with_cpus,
)
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.mems import BASE_PAGES, MemoryShort, bytes_text
from nri_resmgr.policy.topology_aware.errors import ExclusiveCpusMissing, NoPoolFits
from nri_resmgr.policy.topology_aware.memory import limit_above_request
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.values import ONE_CPU, Bytes, PolicyError, QosClass

State: TypeAlias = TopologyAwareState


def node_for(
    change: Change, state: State, pod: str, container: str = ""
) -> TopologyAwareState:
    """Return the state that a container, known or new, is placed in after a change."""
    return state.alone(pod, container) if change.stops else state


def _preferring(**fields: bool) -> Edit:
    def edit(spec: ContainerSpec) -> ContainerSpec:
        return replace(spec, preferences=replace(spec.preferences, **fields))

    return edit


_STOP: Final = Change("stop containers on this node", stops=True)
_STOP_MEMORY: Final = Change("stop containers that have memory there", stops=True)
_SHARED: Final = Change(
    "annotate it with prefer-shared-cpus", edit=_preferring(shared=True)
)
_OF_CONTAINERS: Final = (
    _SHARED,
    Change("annotate it with prefer-isolated-cpus", edit=_preferring(isolated=True)),
    Change("do not require isolated CPUs", edit=_preferring(require_isolated=False)),
    Change(
        "do not make its topology hints strict", edit=_preferring(strict_hints=False)
    ),
    Change(
        'set "onFailure: shared" to run it on shared CPUs',
        settings={"on_failure": OnFailure.SHARED},
    ),
)

Place: TypeAlias = Callable[[Change], object]
"""Places a refused request after a change, or raises a `PolicyError`."""


def advise(error: PolicyError, spec: ContainerSpec, place: Place) -> None:
    """Add to the refusal of a container what would help.

    All is tried by itself: where two changes are needed, neither is named.
    """
    if not isinstance(error, NoPoolFits | MemoryShort):
        return
    accepts = partial(_accepts, place)
    helps = [one.text for one in _of_memory(error) if accepts(one)]
    lacks_memory = isinstance(error, MemoryShort) or error.lacks_memory
    stop = _STOP_MEMORY if lacks_memory else _STOP
    if accepts(stop):
        helps.append(stop.text)
    elif not lacks_memory and (most := most_cpus(spec, accepts)):
        helps.append(at_most(most).text)
    # Memory is short for them with all CPUs alike, so that only settings are left.
    changes = (one for one in _OF_CONTAINERS if one.settings or not lacks_memory)
    helps += [one.text for one in changes if accepts(one)]
    error.advice = sentence(helps)


def advise_pod(error: PolicyError, place: Place) -> None:
    """Add to the refusal of a pod that is placed as a whole what would help."""
    if isinstance(error, NoPoolFits):
        changes = (_STOP, _SHARED, ONE_BY_ONE)
        helps = [one.text for one in changes if _accepts(place, one)]
        error.advice = sentence(helps)


def _accepts(place: Place, change: Change) -> bool:
    try:
        place(change)
    except PolicyError:
        return False
    return True


def without_exclusive_cpus(
    error: ExclusiveCpusMissing, spec: ContainerSpec, accepts: Callable[[Change], bool]
) -> Iterator[str]:
    """Yield what helps a container whose annotation requires exclusive CPUs."""
    count = max(-(-spec.request // ONE_CPU), 1)

    def whole(spec: ContainerSpec) -> ContainerSpec:
        return with_cpus(count)(replace(spec, qos=QosClass.GUARANTEED))

    def bare(spec: ContainerSpec) -> ContainerSpec:
        asked = spec.preferences
        named = {"cpu_class": asked.cpu_class, "irq": asked.irq}
        gone = {
            name: None for name, one in named.items() if one and one.key == error.key
        }
        return replace(spec, preferences=replace(asked, **gone))

    changes = (
        Change("ask for whole CPUs with equal requests and limits", whole),
        Change("remove the annotation", bare),
    )
    return (one.text for one in changes if accepts(one))


def _of_memory(error: NoPoolFits | MemoryShort) -> Iterator[Change]:
    short = error if isinstance(error, MemoryShort) else error.short
    if short is None or not short.most:
        return
    most, page = short.most, short.page_size
    pages = "" if page == BASE_PAGES else f" of {bytes_text(page)} huge pages"
    text = f"ask for at most {bytes_text(most, down=True)}{pages}"
    if pages:
        yield Change(text, partial(_with_pages, page, most))
    else:
        yield Change(text, partial(_with_memory, most))


def _with_memory(most: Bytes, spec: ContainerSpec) -> ContainerSpec:
    limit = spec.memory_limit
    # A limit above the request may stay.
    if limit is not None and not limit_above_request(spec):
        limit = min(limit, most)
    request = min(spec.memory_request, most)
    return replace(spec, memory_request=request, memory_limit=limit)


def _with_pages(page: Bytes, most: Bytes, spec: ContainerSpec) -> ContainerSpec:
    hugepages = tuple(
        replace(one, count=min(one.count, most // page)) if one.size == page else one
        for one in spec.hugepages
    )
    return replace(spec, hugepages=hugepages)
