"""RDT and block I/O of running containers, as the daemon has them follow."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Final

from nri_resmgr.daemon.given_up import telling_of_a_fault
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.values import HostError

# In the state directory as long as there is anything to take back.
_JOURNAL: Final = "resctrl"
_BLOCKIO: Final = "blockio"


async def have_rdt_follow(daemon: Daemon) -> None:
    """Make groups, and keep containers in them, until cancelled."""
    with telling_of_a_fault(daemon.policy.class_hosts.give_rdt_up):
        await _follow_rdt(daemon)


async def have_blockio_follow(daemon: Daemon) -> None:
    """Write changes of block I/O classes into cgroups, until cancelled."""
    with telling_of_a_fault(daemon.policy.class_hosts.give_blockio_up):
        await _follow_blockio(daemon)


async def _follow_rdt(daemon: Daemon) -> None:
    watch, policy = daemon.classes, daemon.policy
    is_left = await asyncio.to_thread(_is_kept, daemon, _JOURNAL)
    await watch.until(lambda: is_left or policy.config.rdt is not None)
    # In a thread: requests go first, and this takes as long as fifty of them. Most
    # nodes have no such classes.
    await asyncio.to_thread(import_module, "nri_resmgr.app.rdt_effects")
    from nri_resmgr.app.rdt_effects import RdtEffects
    from nri_resmgr.app.rdt_work import RdtWork, opener

    host = policy.class_hosts.rdt
    work = RdtWork(daemon.tree, host, opener(daemon.tree, daemon.state))
    effects = RdtEffects(policy, host, work)
    watch.follow(rdt=effects)
    await effects.run()


async def _follow_blockio(daemon: Daemon) -> None:
    watch, policy = daemon.classes, daemon.policy
    is_left = await asyncio.to_thread(_is_kept, daemon, _BLOCKIO)
    await watch.until(lambda: is_left or policy.config.blockio is not None)
    await asyncio.to_thread(import_module, "nri_resmgr.app.blockio_effects")
    from nri_resmgr.app.blockio_effects import BlockIoEffects
    from nri_resmgr.app.blockio_record import BlockIoRecord

    work, record = policy.class_hosts.blockio_work, BlockIoRecord(daemon.state)
    effects = BlockIoEffects(policy, work, record, daemon.stub)
    watch.follow(blockio=effects)
    await effects.run()


def _is_kept(daemon: Daemon, name: str) -> bool:
    try:
        return daemon.state is not None and daemon.state.read(name) is not None
    except HostError:
        return True  # who can say more of it will
