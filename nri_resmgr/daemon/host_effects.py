"""CPU classes, Speed Select and interrupts as the daemon has the host follow them."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any, Final

from nri_resmgr.app.host_wanted import Wanted, use_in_force
from nri_resmgr.app.host_watch import HostWatch
from nri_resmgr.app.ticks import until_tick
from nri_resmgr.daemon.given_up import telling_of_a_fault
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.values import HostError

LEFTOVERS: Final = ("host-changes", "speed-select-changes", "irqbalance")
"""In the state directory where an earlier process did not put the host back."""

# Of a burst of pods, one write has to do for many.
_PAUSE: Final = 0.1  # seconds between the end of a round and the next one

# Where nobody verifies, interrupts come and go all the same.
_INTERVAL: Final = 60.0  # seconds


async def have_host_follow(daemon: Daemon) -> None:
    """Have the host follow the policy, until cancelled."""
    watch: HostWatch = daemon.host
    with telling_of_a_fault(watch.ended):
        await _follow(daemon, watch)


async def _follow(daemon: Daemon, watch: HostWatch) -> None:
    interval = daemon.options.verify_interval or _INTERVAL
    is_change = await watch.next(None)
    last, has_leftovers = None, await asyncio.to_thread(_has_leftovers, daemon.state)
    while True:
        wanted = _wanted(daemon)
        if watch.effects is None and (has_leftovers or not wanted.use.is_idle):
            watch.effects = await _effects(daemon)
        effects = watch.effects
        is_due = wanted != last or not is_change
        if effects is not None and (is_due or effects.is_waiting):
            await effects.follow(wanted, looks=not is_change)
            last = wanted
        await asyncio.sleep(_PAUSE)
        looks = effects is not None and not (wanted.use.is_idle and effects.is_done)
        is_change = await watch.next(until_tick(interval) if looks else None)


def _wanted(daemon: Daemon) -> Wanted:
    policy = daemon.policy
    config, use = policy.config, use_in_force(policy)
    return Wanted(use, config.cpu_classes, config.interrupts, policy.machine)


def _has_leftovers(state: StateDir | None) -> bool:
    try:
        return state is not None and any(
            state.read(name) is not None for name in LEFTOVERS
        )
    except HostError:
        return True  # who can say more of it will


async def _effects(daemon: Daemon) -> Any:
    # In a thread: requests go first, and this takes as long as fifty of them. Most
    # nodes have no such settings.
    await asyncio.to_thread(import_module, "nri_resmgr.app.host_effects")
    from nri_resmgr.app.host_effects import HostEffects, Means
    from nri_resmgr.app.host_report import HostReport

    options = daemon.options
    pause = options.verify_interval if options.verify_repair == "yes" else 0.0
    means = Means(
        tree=daemon.tree,
        state=daemon.state,
        dry_run=options.dry_run,
        verifies=bool(options.verify_interval),
        pause=pause,
    )
    return HostEffects(means, HostReport(daemon.watch.history))
