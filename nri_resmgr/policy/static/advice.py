"""Changes that would help a container that is refused exclusive CPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nri_resmgr.policy.advice import Change, at_most, most_cpus, with_cpus
from nri_resmgr.policy.errors import ExclusiveCpusShort, OnFailure
from nri_resmgr.policy.events import Created, Event, PodCreated, Updated
from nri_resmgr.policy.whole_pods import PodPlacement

_STOP = Change("stop containers that hold CPUs", stops=True)
_SHARED = Change(
    'set "onFailure: shared" to run it on shared CPUs',
    settings={"on_failure": OnFailure.SHARED},
)
_SOFT = Change(
    'set "placePods: soft" to place its containers one by one',
    settings={"place_pods": PodPlacement.SOFT},
)


def helps(
    error: ExclusiveCpusShort, event: Event, accepts: Callable[[Change], bool]
) -> Iterator[str]:
    """Yield what would help, each tried by itself."""
    if accepts(_STOP):
        yield _STOP.text
    elif isinstance(event, Created | Updated) and (
        most := most_cpus(event.spec, accepts)
    ):
        yield at_most(most).text
    fewer = Change(
        "reserve fewer CPUs", settings={"reserved": error.reserved.lowest(1)}
    )
    if len(error.reserved) > 1 and accepts(fewer):
        yield fewer.text
    if error.isolated:
        single = Change(
            f"ask for one at a time (isolated and free: {error.isolated}, "
            "given to single-CPU containers only)",
            with_cpus(1),
        )
        if accepts(single):
            yield single.text
    last = _SOFT if isinstance(event, PodCreated) else _SHARED
    if accepts(last):
        yield last.text
