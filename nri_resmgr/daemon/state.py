"""The state directory as the daemon opens it, or goes on without it."""

from __future__ import annotations

import time
from typing import Final

from nri_resmgr.host.state_dir import StateDir, StateInUse, StateUnusable
from nri_resmgr.log import Logger

log = Logger(__name__)

# A runtime that starts anew may launch us before the one that it launched earlier
# has noticed that it is to end.
_PATIENCE: Final = 1.0
_PAUSE: Final = 0.05


def open_state(path: str, *, dry_run: bool = False) -> StateDir | None:
    """Open the state directory for this process alone.

    Args:
        path: Where it is; empty for no state.
        dry_run: What is only tried out is neither kept nor started from.

    Returns:
        None where no state is kept: a node is served without memory rather than
        not at all.

    Raises:
        UntrustedState: Others may have changed what is in it.
        StateInUse: Another process works with it.
    """
    if not path or dry_run:
        return None
    try:
        state = StateDir.open(path)
        _lock(state)
    except StateUnusable as error:
        log.warning("state.not-kept", why=str(error), instead="serving without memory")
        return None
    return state


def _lock(state: StateDir) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            state.lock()
        except StateInUse:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)
        else:
            return
