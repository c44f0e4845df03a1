"""The node's extended resources and features, published as the configuration says.

Imported with the first configuration that publishes any.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from nri_resmgr.app.background.threads import imported, in_thread
from nri_resmgr.app.offers.extended_resources import (
    DEVICE_PLUGIN,
    Amount,
    PolicyNow,
    amounts_of,
    count_variable,
    now_of,
)
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.host.node_features import write_features
from nri_resmgr.kubelet.offers import Offer
from nri_resmgr.kubelet.sockets import kubelet_dir
from nri_resmgr.log import Logger
from nri_resmgr.values import HostError

if TYPE_CHECKING:
    # Needs the extra "kubelet".
    from nri_resmgr.kubelet.device_plugin import DevicePlugins

log = Logger(__name__)

_SOON: Final = 0.2  # seconds in which several decisions are one change
_PAUSE: Final = 1.0  # seconds between two computations
_NOT_INSTALLED: Final = "grpclib is not installed: pip install 'nri-resmgr[kubelet]'"


async def publish(daemon: Daemon) -> None:
    """Compute and publish after each change, until cancelled."""
    daemon.offers.plugins = plugins = await _device_plugins(daemon)
    async with asyncio.TaskGroup() as group:
        if plugins is not None:
            group.create_task(plugins.run())
        group.create_task(_compute(daemon, plugins))


async def _compute(daemon: Daemon, plugins: DevicePlugins | None) -> None:
    offers = daemon.offers
    offers.changed.set()
    features: str | None = None
    while True:
        await offers.changed.wait()
        if not daemon.observers.sessions.is_synchronized:
            await asyncio.sleep(_PAUSE)  # what runs on the node is not known
            continue
        await asyncio.sleep(_SOON)
        offers.changed.clear()
        now = now_of(daemon.policy)
        # Policies are pure, and requests go on meanwhile.
        amounts = await in_thread(partial(amounts_of, now))
        if amounts != offers.amounts:
            _report(daemon, amounts)
        offers.amounts = amounts
        if plugins is not None:
            plugins.offer(_offers(amounts))
        if not daemon.options.dry_run:
            features = await _write_features(daemon, now, features)
        await asyncio.sleep(_PAUSE)


def _offers(amounts: Sequence[Amount]) -> list[Offer]:
    return [
        Offer(one.name, one.capacity, one.value, count_variable(one.name))
        for one in amounts
        if one.by == DEVICE_PLUGIN
    ]


def _report(daemon: Daemon, amounts: Sequence[Amount]) -> None:
    before = {one.name: one for one in daemon.offers.amounts}
    for one in amounts:
        if one != before.pop(one.name, None):
            why = f"{one.value} of {one.capacity}, by {one.by}"
            daemon.observers.history.note("resource.published", one.name, why)
    for name in before:
        daemon.observers.history.note("resource.withdrawn", name)


async def _device_plugins(daemon: Daemon) -> DevicePlugins | None:
    folder = kubelet_dir(daemon.options.kubelet_dir)
    if daemon.options.dry_run or folder is None:
        daemon.offers.no_plugins = (
            "dry run" if daemon.options.dry_run else "off, by --kubelet-dir"
        )
        return None
    try:
        module = await imported("nri_resmgr.kubelet.device_plugin")
    except ImportError:
        daemon.offers.no_plugins = _NOT_INSTALLED
        log.warning("device-plugin.unavailable", why=_NOT_INSTALLED)
        return None
    found: DevicePlugins = module.DevicePlugins(folder / module.FOLDER)
    return found


async def _write_features(daemon: Daemon, now: PolicyNow, before: str | None) -> str:
    """Write the file, or remove it; return its text."""
    text = ""
    if now.config.publish.node_features:
        # Late: few nodes have it.
        from nri_resmgr.app.offers.node_features import features_of

        text = await in_thread(lambda: features_of(now))
    if text == before and not daemon.offers.features_problem:
        return text
    try:
        await in_thread(lambda: write_features(daemon.tree.root, text))
    except HostError as error:
        if str(error) != daemon.offers.features_problem:
            log.warning("features.not-written", why=str(error))
        daemon.offers.features_problem = str(error)
    else:
        daemon.offers.features_problem = ""
    return text
