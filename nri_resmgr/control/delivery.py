"""Delivery of decisions to running containers, and those that wait, as JSON data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache, partial
from typing import Final

from nri_resmgr.app.background.threads import OneCall
from nri_resmgr.app.observing.sessions import SessionState
from nri_resmgr.app.running.container import PinStatus
from nri_resmgr.app.running.delivery import pending_pins
from nri_resmgr.control.daemon_view import DaemonView
from nri_resmgr.host.cgroups.containers import CgroupReference, ContainerCgroups
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.events import Pin
from nri_resmgr.values import HostError
from nri_resmgr.values.documents import JsonObject

# A tenth of a millisecond for each container, unless the host hangs.
_PATIENCE: Final = 2.0  # seconds

# Containers of a shared pool have the same sets.
_text_of: Final = lru_cache(maxsize=256)(str)

_ABOUT_TO_BE_WRITTEN: Final = "its cgroup is about to be written"
_NO_SESSION: Final = "there is no session with the runtime, which is to update it"
_IN_REPLIES: Final = (
    "this runtime takes updates in replies only, so its next request brings it about"
)
_ABOUT_TO_BE_CALLED: Final = "the runtime is about to update it"


def deliveries_of(daemon: DaemonView) -> JsonObject:
    """Describe how running containers get changed values, and with which success."""
    delivery = daemon.policy.delivery
    counts = delivery.counts
    by = "runtime" if counts is None else "cgroup"
    return {
        "by": "none" if daemon.policy.options.dry_run else by,
        "why": delivery.problem,
        "byRuntime": len(delivery.by_runtime()),
        "writes": counts
        and {
            "written": counts.written,
            "rewritten": counts.rewritten,
            "failed": counts.failed,
            "lateStarts": counts.late_starts,
            "lastSeconds": round(counts.seconds, 6),
        },
    }


def pending_of(daemon: DaemonView) -> JsonObject:
    """Count the containers whose decided values are not in force yet."""
    waiting = pending_pins(daemon.policy.delivery, daemon.policy.updates)
    return {
        "count": waiting.count,
        "oldestSeconds": round(waiting.oldest_seconds, 3),
    }


def delivery_of(container: str, daemon: DaemonView) -> JsonObject | None:
    """Describe where the values of a container have arrived; None for an unknown one.

    What is in force is not among it: `KernelReader` reads that.
    """
    status = daemon.policy.delivery.status_of(container)
    if daemon.policy.options.dry_run or status is None:
        return None
    writes = daemon.policy.delivery.counts is not None and not status.by_runtime
    return {
        "by": "cgroup" if writes else "runtime",
        "why": status.by_runtime,
        "recorded": None if status.recorded is None else _values(status.recorded),
        "waitingSeconds": round(status.waiting_seconds, 3),
        "waitsFor": _waits_for(status, daemon, writes=writes),
    }


class KernelReader:
    """Reads what the kernel has in force for containers, when a client asks."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._reading = OneCall[dict[str, JsonObject | None]](_PATIENCE)

    async def read(
        self, containers: Collection[CgroupReference]
    ) -> Mapping[str, JsonObject]:
        """Read in a thread; those that cannot be read are left out."""
        # A read that hangs, or another client's, may have other containers.
        for _ in range(2):
            call = partial(_in_force, self._tree, tuple(containers))
            try:
                found = await self._reading.result(call)
            except TimeoutError:
                return {}
            if all(one.id in found for one in containers):
                break
        return {key: one for key, one in found.items() if one is not None}


def _in_force(
    tree: Tree, containers: Collection[CgroupReference]
) -> dict[str, JsonObject | None]:
    cgroups = ContainerCgroups(tree)
    return {one.id: _values_in_force(cgroups, one) for one in containers}


def _values_in_force(
    cgroups: ContainerCgroups, container: CgroupReference
) -> JsonObject | None:
    try:
        found = cgroups.read(container)
    except HostError:
        return None
    if found is None or found.cpus is None or found.mems is None:
        return None
    return {"cpus": str(found.cpus), "mems": str(found.mems)}


def _values(pin: Pin) -> JsonObject:
    return {"cpus": _text_of(pin.cpus), "mems": str(pin.mems)}


def _waits_for(status: PinStatus, daemon: DaemonView, *, writes: bool) -> str:
    if not status.waiting_seconds:
        return ""
    if writes:
        return _ABOUT_TO_BE_WRITTEN
    if daemon.sessions.state is SessionState.DISCONNECTED:
        return _NO_SESSION
    return _ABOUT_TO_BE_CALLED if daemon.policy.updates.may_call else _IN_REPLIES
