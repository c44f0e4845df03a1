"""Changes that would help a container that is refused exclusive CPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nri_resmgr.policy.advice import ONE_BY_ONE, Change, stop_or_fewer, with_cpus
from nri_resmgr.policy.errors import ExclusiveCpusShort, OnFailure
from nri_resmgr.policy.events import Event, PodCreated

_STOP = Change("stop containers that hold CPUs", stops=True)
_SHARED = Change(
    'set "onFailure: shared" to run it on shared CPUs',
    settings={"on_failure": OnFailure.SHARED},
)


def helps(
    error: ExclusiveCpusShort, event: Event, accepts: Callable[[Change], bool]
) -> Iterator[str]:
    """Yield what would help, each tried by itself."""
    yield from stop_or_fewer(_STOP, event, accepts)
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
    last = ONE_BY_ONE if isinstance(event, PodCreated) else _SHARED
    if accepts(last):
        yield last.text
