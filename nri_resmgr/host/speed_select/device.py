"""Opens the Speed Select device of a host and reads its facts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from nri_resmgr.host.paths import SST_DEVICE
from nri_resmgr.host.recorded import RecordedTree, RecordingTree
from nri_resmgr.host.speed_select.isst import (
    IsstDevice,
    OpenIsst,
    SpeedSelectUnsupported,
)
from nri_resmgr.host.speed_select.punits import read_punits
from nri_resmgr.host.tree import HostTree, Tree
from nri_resmgr.log import Logger
from nri_resmgr.topology import Core
from nri_resmgr.topology.speed_select import Punit

log = Logger(__name__)


def read_speed_select(tree: Tree, cores: Sequence[Core]) -> tuple[Punit, ...]:
    """Read the facts of every punit, by package and number.

    All or nothing: without permission, on unknown hardware, and after any error there
    are none; that is logged.
    """
    try:
        with open_isst(tree) as device:
            return tuple(read_punits(device, cores))
    except (OSError, SpeedSelectUnsupported) as error:
        log.warning(
            "topology.fallback", missing="Speed Select", used="none", why=str(error)
        )
        return ()


@contextmanager
def open_isst(tree: Tree) -> Iterator[IsstDevice]:
    """Open the device of a host; ioctls that change settings need more permissions.

    Raises:
        SpeedSelectUnsupported: There is none, or the host's files are a recording.
        OSError: It cannot be opened.
    """
    while isinstance(tree, RecordingTree):
        tree = tree.tree
    if isinstance(tree, RecordedTree) and tree.isst is not None:
        yield tree.isst
        return
    path = tree.target(SST_DEVICE)
    if not isinstance(tree, HostTree) or path is None:
        raise SpeedSelectUnsupported("the device was not recorded")
    # Reading needs no write permission; O_NONBLOCK in case the path is a FIFO.
    fd = os.open(tree.root + path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        yield OpenIsst(fd)
    finally:
        os.close(fd)
