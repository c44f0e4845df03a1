"""The daemon's state directory: opened at the start, and reset on request."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from nri_resmgr.checkpoint.encode import CHECKPOINT_NAME
from nri_resmgr.daemon.claims_file import CLAIMS_NAME
from nri_resmgr.daemon.configuration_cache import CACHE_NAME
from nri_resmgr.host.state_dir import StateDir, StateInUse, StateUnusable
from nri_resmgr.log import Logger
from nri_resmgr.values import HostError

log = Logger(__name__)

# A restarted runtime may launch this process before the one that it launched earlier
# has ended.
_PATIENCE: Final = 1.0  # seconds
_PAUSE: Final = 0.05  # seconds


def open_state(path: str, *, dry_run: bool = False) -> StateDir | None:
    """Open the state directory for this process alone.

    Args:
        path: Where it is; empty for no state.
        dry_run: Whether to neither read nor write any state.

    Returns:
        None where no state is to be kept. One that cannot be used now is opened as soon
        as it can: serving without state is better than not at all.

    Raises:
        UntrustedState: Other users may have changed its contents.
        StateInUse: Another process uses it.
    """
    if not path or dry_run:
        return None
    try:
        state = StateDir.open(path)
        try:
            _lock(state)
        except HostError:
            state.close()
            raise
    except StateUnusable as error:
        instead = "serving without saved state until it can be opened"
        log.warning("state.not-kept", why=str(error), instead=instead)
        return StateDir.unopened(path)
    return state


def reset(options: argparse.Namespace) -> None:
    """Discard the files that the reset flags name; see `discard` for errors."""
    names = []
    if options.reset_config:
        names.append(CACHE_NAME)
    if options.reset_policy:
        names += [CHECKPOINT_NAME, CLAIMS_NAME]
    discard(options.state_dir, names)


def discard(path: str, names: Sequence[str]) -> None:
    """Remove files of the state directory, where they exist.

    Args:
        path: The directory; empty for none.
        names: The files.

    Raises:
        UntrustedState: Other users may have changed its contents.
        StateInUse: Another process uses it, and would write them again.
        StateUnusable: They cannot be removed.
    """
    if path and Path(path).exists():
        with closing(StateDir.open(path)) as state:
            state.lock()
            for name in names:
                state.remove(name)
    log.info("state.discarded", folder=path, names=names)


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
