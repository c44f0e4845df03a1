"""What the next start is not to know."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from nri_resmgr.app.checkpoint.write import CHECKPOINT_NAME
from nri_resmgr.daemon.configuration_cache import CACHE_NAME
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.log import Logger

log = Logger(__name__)


def reset(options: argparse.Namespace) -> None:
    """Do what the reset flags ask for; `forget` tells what can go wrong."""
    names = []
    if options.reset_config:
        names.append(CACHE_NAME)
    if options.reset_policy:
        names.append(CHECKPOINT_NAME)
    forget(options.state_dir, names)


def forget(path: str, names: Sequence[str]) -> None:
    """Remove files of the state directory; those that are missing are gone already.

    Args:
        path: The directory; empty for none.
        names: The files.

    Raises:
        UntrustedState: Others may have put something there.
        StateInUse: A process works with it, and would write them again.
        StateUnusable: They cannot be removed.
    """
    if path and Path(path).exists():
        with closing(StateDir.open(path)) as state:
            state.lock()
            for name in names:
                state.remove(name)
    log.info("state.discarded", folder=path, names=names)
