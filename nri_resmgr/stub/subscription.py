"""Which events to subscribe to at a runtime that may not know them all."""

from __future__ import annotations

from nri_proto import events_of
from nri_proto.levels import OLDEST_EVENT_MASK
from nri_resmgr.stub.errors import BadHandler, RuntimeTooOld
from nri_resmgr.stub.runtime_info import RuntimeInfo


def choose_mask(
    handled: int, wanted: int | None, runtime: RuntimeInfo, *, may_guess: bool
) -> int:
    """Cut a subscription to what the runtime's NRI knows.

    One unknown bit ends the session, and an empty mask subscribes to everything,
    so neither is ever sent.

    Args:
        handled: The events that have a handler.
        wanted: What the ``configure`` handler asked for; None or 0 is all.
        runtime: Its level decides; None is an unknown one.
        may_guess: Whether to try the whole mask on a runtime of unknown level:
            only where the connection can be made again when that was wrong.

    Raises:
        BadHandler: *wanted* has an event without a handler.
        RuntimeTooOld: Nothing of it is known to the runtime.
    """
    if extra := (wanted or 0) & ~handled:
        names = ", ".join(event.method for event in events_of(extra)) or hex(extra)
        raise BadHandler(f"configure() subscribed to {names} without a handler")
    mask = wanted or handled
    if runtime.level is not None:
        known = runtime.level.event_mask
    else:
        known = mask if may_guess else OLDEST_EVENT_MASK
    if not mask & known:
        names = ", ".join(event.method for event in events_of(mask))
        raise RuntimeTooOld(str(runtime), runtime.level, names)
    return mask & known
