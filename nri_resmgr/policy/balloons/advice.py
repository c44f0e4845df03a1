"""Changes that would help a container that no balloon has room for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from nri_resmgr.policy.advice import ONE_BY_ONE, Change, sentence, stop_or_fewer
from nri_resmgr.policy.balloons.settings import (
    RESERVED,
    BalloonsSettings,
    BalloonType,
)
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.events import Event, PodCreated

_STOP = Change("stop containers on this node", stops=True)
_SHARED = Change(
    'set "onFailure: shared" to run it in the default balloon',
    settings={"on_failure": OnFailure.SHARED},
)


def helps(
    kind: BalloonType,
    settings: BalloonsSettings,
    event: Event,
    accepts: Callable[[Change], bool],
) -> Iterator[str]:
    """Yield what would help, each tried by itself; *kind* is the requested type."""
    yield from stop_or_fewer(_STOP, event, accepts)
    for change in _of_type(kind, settings):
        if accepts(change):
            yield change.text
    last = ONE_BY_ONE if isinstance(event, PodCreated) else _SHARED
    if accepts(last):
        yield last.text


def _of_type(kind: BalloonType, settings: BalloonsSettings) -> Iterator[Change]:
    if kind.max_cpus is not None or kind.cpus:
        more = replace(kind, max_cpus=None, cpus=())
        text = f"let balloons of type {kind.name} have more CPUs"
        yield Change(text, settings=_with(more, settings))
    # The balloons of a type with listed CPUs are as many as there are lists.
    if kind.max_balloons is not None and not kind.cpus:
        more = replace(kind, max_balloons=None)
        text = f"allow more balloons of type {kind.name}"
        yield Change(text, settings=_with(more, settings))


def _with(
    kind: BalloonType, settings: BalloonsSettings
) -> dict[str, tuple[BalloonType, ...]]:
    types = (kind if one.name == kind.name else one for one in settings.types)
    return {"types": tuple(types)}


def smaller_minimum(
    settings: BalloonsSettings, starts: Callable[[BalloonsSettings], bool]
) -> str:
    """Return what of the types would help a node that the first balloons do not fit.

    Where no single type can be made small enough, it is several.
    """
    keys = {"minCPUs": {"min_cpus": 0}, "minBalloons": {"min_balloons": 0}}
    helps = []
    # The size of the reserved balloon is that of the reserved CPUs.
    for kind in [one for one in settings.types if one.name != RESERVED]:
        found = [
            key
            for key, fields in keys.items()
            if starts(replace(settings, **_with(replace(kind, **fields), settings)))
        ]
        if found:
            helps.append(f"lower {' or '.join(found)} of type {kind.name}")
    return sentence(helps or ["lower minCPUs or minBalloons of several types"])
