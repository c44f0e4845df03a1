"""RDT and block I/O of running containers, as the daemon has them follow."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Final

from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.values import HostError

_JOURNAL: Final = "resctrl"
"""In the state directory as long as there is anything to take back."""


async def have_rdt_follow(daemon: Daemon) -> None:
    """Make groups, and keep containers in them, until cancelled."""
    watch, policy = daemon.classes, daemon.policy
    is_left = daemon.state is not None and await asyncio.to_thread(_has_journal, daemon)
    await watch.until(lambda: is_left or policy.config.rdt is not None)
    # In a thread: requests go first, and this takes as long as fifty of them.
    await asyncio.to_thread(import_module, "nri_resmgr.app.rdt_effects")
    from nri_resmgr.app.rdt_effects import RdtEffects
    from nri_resmgr.app.rdt_work import RdtWork, opener

    host = policy.class_hosts.rdt
    work = RdtWork(daemon.tree, host, opener(daemon.tree, daemon.state))
    watch.rdt = RdtEffects(policy, host, work)
    await watch.rdt.run()


async def have_blockio_follow(daemon: Daemon) -> None:
    """Write changes of block I/O classes into cgroups, until cancelled."""
    watch, policy = daemon.classes, daemon.policy
    await watch.until(lambda: policy.config.blockio is not None)
    await asyncio.to_thread(import_module, "nri_resmgr.app.blockio_effects")
    from nri_resmgr.app.blockio_effects import BlockIoEffects

    work = policy.class_hosts.blockio_work
    watch.blockio = BlockIoEffects(policy, work, daemon.stub)
    await watch.blockio.run()


def _has_journal(daemon: Daemon) -> bool:
    try:
        return daemon.state is not None and daemon.state.read(_JOURNAL) is not None
    except HostError:
        return True  # who can say more of it will
