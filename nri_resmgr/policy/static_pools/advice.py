"""Changes that would help a container that gets no CPU lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from nri_resmgr.policy.advice import Change, most_accepted
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.static_pools.errors import ListsShort, NoListsRequested
from nri_resmgr.policy.static_pools.settings import SHARED
from nri_resmgr.values.counts import count_text

_STOP = Change("stop containers that hold lists", stops=True)


def _of_any_socket(spec: ContainerSpec) -> ContainerSpec:
    return replace(spec, pool_request=replace(spec.pool_request, socket=""))


def _of_shared(spec: ContainerSpec) -> ContainerSpec:
    return replace(spec, pool_request=replace(spec.pool_request, pool=SHARED))


def helps(
    error: ListsShort | NoListsRequested,
    resource: str,
    accepts: Callable[[Change], bool],
) -> Iterator[str]:
    """Yield what would help, each tried by itself; *resource* counts lists."""

    def with_lists(count: int) -> Change:
        def edit(spec: ContainerSpec) -> ContainerSpec:
            # Where resources are known, these count, and the environment otherwise.
            asked = replace(spec.pool_request, lists=str(count))
            extended = {**spec.extended, resource: count}
            return replace(spec, pool_request=asked, extended=extended)

        return Change(f"ask for at most {count_text(count, 'list')}", edit)

    if isinstance(error, NoListsRequested):
        if accepts(with_lists(1)):
            yield f"add {resource} to its requests and limits"
        shared = Change(f"name the pool {SHARED}", _of_shared)
        if accepts(shared):
            yield shared.text
        return
    if accepts(_STOP):
        yield _STOP.text
    elif most := most_accepted(
        range(1, error.wanted), lambda count: accepts(with_lists(count))
    ):
        yield with_lists(most).text
    if error.socket >= 0:
        anywhere = Change("ask for any socket", _of_any_socket)
        if accepts(anywhere):
            yield anywhere.text
