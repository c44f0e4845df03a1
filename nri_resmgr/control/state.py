"""``GET /v1/state``: the daemon, the pools of the node, and its containers."""

from __future__ import annotations

import os
import time
from typing import Final

from nri_resmgr.app.configuration.status import ConfigurationStatus
from nri_resmgr.control.classes import classes_of
from nri_resmgr.control.containers import (
    PolicySnapshot,
    containers_of,
    snapshot_of,
    verification_of,
)
from nri_resmgr.control.daemon_view import API_VERSION, Checkpoints, DaemonView
from nri_resmgr.control.host_settings import host_settings_of
from nri_resmgr.control.times import time_text
from nri_resmgr.policy.mems import MemoryLedger
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.stub.pending_updates import PendingUpdates
from nri_resmgr.topology import Machine, Node
from nri_resmgr.values import CpuSet, NodeSet
from nri_resmgr.values.documents import JsonObject
from nri_resmgr.version import our_version

_SECOND: Final = 10**9  # nanoseconds


def state_of(daemon: DaemonView) -> JsonObject:
    """Describe the daemon and its node."""
    snapshot, machine = snapshot_of(daemon), daemon.policy.machine
    return {
        "apiVersion": API_VERSION,
        "kind": "State",
        "daemon": _daemon(daemon),
        "runtime": _runtime(daemon),
        "session": _session(daemon),
        "pendingUpdates": _pending_updates(daemon.policy.updates.pending),
        "policy": daemon.policy.policy.kind,
        "configuration": _configuration(daemon.configuration()),
        "kubelet": [
            {"manager": one.kind, "policy": one.policy, "why": str(one)}
            for one in daemon.kubelet()
        ],
        "verification": verification_of(snapshot.verification),
        "checkpoint": _checkpoint(daemon.checkpoints()),
        "host": host_settings_of(daemon, snapshot),
        "classes": classes_of(daemon.policy),
        "cpus": _cpus(snapshot, machine),
        "nodes": [_node(node, daemon.policy.state) for node in machine.nodes],
        "pools": [_pool(pool) for pool in snapshot.pools],
        "containers": list(containers_of(snapshot)),
    }


def _daemon(daemon: DaemonView) -> JsonObject:
    return {
        "version": our_version(),
        "pid": os.getpid(),
        "plugin": daemon.plugin,
        "started": time_text(daemon.started),
        "uptimeSeconds": (time.time_ns() - daemon.started) // _SECOND,
        "dryRun": daemon.dry_run,
        "lastEvent": daemon.history.last,
    }


def _runtime(daemon: DaemonView) -> JsonObject:
    runtime = daemon.runtime()
    return {
        "name": runtime.name,
        "version": runtime.version,
        "nri": str(runtime.level or ""),
        "requestTimeoutSeconds": runtime.request_timeout,
    }


def _session(daemon: DaemonView) -> JsonObject:
    sessions = daemon.sessions
    return {
        "state": sessions.state.value,
        "number": sessions.number,
        "since": time_text(sessions.since),
        "lostAt": time_text(sessions.lost_at),
        "lostWhy": sessions.lost_why,
    }


def _pending_updates(pending: PendingUpdates) -> JsonObject:
    seconds = round(pending.oldest_seconds, 3)
    return {"count": len(pending), "oldestSeconds": seconds}


def _configuration(status: ConfigurationStatus) -> JsonObject:
    error = status.error
    return {
        "source": status.source.value,
        "name": status.name,
        "cached": status.cached,
        "kind": status.kind,
        "sha256": status.sha256,
        "accepted": _text_of_seconds(status.accepted),
        "generation": status.generation,
        "ineffective": list(status.ineffective),
        "rejected": status.rejected,
        "error": error
        and {
            "source": error.source.value,
            "name": error.name,
            "why": error.why,
            "when": _text_of_seconds(error.when),
        },
    }


def _checkpoint(found: Checkpoints | None) -> JsonObject | None:
    if found is None:
        return None
    return {
        "writes": found.writes,
        "failures": found.failures,
        "isFailing": found.is_failing,
        "lastBytes": found.last_size,
        "lastSeconds": found.last_seconds,
    }


def _text_of_seconds(seconds: float) -> str:
    return time_text(int(seconds * _SECOND))


def _cpus(snapshot: PolicySnapshot, machine: Machine) -> JsonObject:
    """Sort every online CPU into exactly one kind.

    CPUs for sharing are idle as long as no container is pinned to them.
    """
    used = CpuSet.union(pin.cpus for pin in snapshot.pins.values())
    exclusive = snapshot.exclusive & machine.online
    reserved = CpuSet.union(pool.reserved for pool in snapshot.pools)
    # Those in use are exclusive or shared.
    isolated = (machine.isolated - used) - reserved
    others = machine.online - exclusive - reserved - isolated
    return {
        "online": str(machine.online),
        "offline": str(machine.offline),
        "exclusive": str(exclusive),
        "shared": str(others & used),
        "reserved": str(reserved),
        "isolated": str(isolated),
        "idle": str(others - used),
    }


def _node(node: Node, state: object) -> JsonObject:
    """Describe a node; its granted memory is that of containers limited to it."""
    ledger = getattr(state, "memory", None)  # not every policy accounts for memory
    granted = None
    if isinstance(ledger, MemoryLedger):
        granted = ledger.usage(NodeSet.of(node.id))
    return {
        "id": node.id,
        "kind": node.kind.value,
        "cpus": str(node.cpus),
        "memory": {
            "capacity": node.memory,
            "granted": granted,
            "free": None if granted is None else node.memory - granted,
        },
    }


def _pool(pool: PoolUse) -> JsonObject:
    return {
        "kind": pool.kind,
        "name": pool.name,
        "within": pool.within,
        "cpus": str(pool.cpus),
        "shared": str(pool.shared),
        "isolated": str(pool.isolated),
        "exclusive": str(pool.exclusive),
        "reserved": str(pool.reserved),
        "idle": str(pool.idle),
        "cpu": {
            "capacity": pool.capacity,
            "granted": pool.granted,
            "free": pool.free,
        },
        "mems": str(pool.mems),
        "memory": {"capacity": pool.memory, "granted": pool.memory_granted},
        "containers": list(pool.containers),
        "labels": dict(pool.labels),
    }
