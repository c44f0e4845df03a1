"""``GET /v1/state``: the daemon, the pools of the node, and its containers."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

from nri_resmgr.app.background.supervisor import Part
from nri_resmgr.app.configuration.status import ConfigurationStatus
from nri_resmgr.app.observers.policy_in_force import PolicySnapshot, snapshot_of
from nri_resmgr.control.claims import claims_of
from nri_resmgr.control.classes import classes_of
from nri_resmgr.control.cluster import cluster_of
from nri_resmgr.control.containers import containers_of, verification_of
from nri_resmgr.control.daemon_view import API_VERSION, Checkpoints, DaemonView
from nri_resmgr.control.delivery import deliveries_of, pending_of
from nri_resmgr.control.dra import prepared_claims_of
from nri_resmgr.control.host_settings import host_settings_of
from nri_resmgr.control.partitions import exclusivity_of
from nri_resmgr.control.pools import pool_of
from nri_resmgr.control.reservations import reservations_of
from nri_resmgr.control.sandboxes import sandbox_of
from nri_resmgr.control.times import time_text
from nri_resmgr.policy.mems import MemoryLedger
from nri_resmgr.topology import Node
from nri_resmgr.values import CpuSet, NodeSet
from nri_resmgr.values.documents import JsonObject
from nri_resmgr.version import our_version

if TYPE_CHECKING:  # few nodes publish any
    from nri_resmgr.app.offers.extended_resources import Amount

_SECOND: Final = 10**9  # nanoseconds


def state_of(daemon: DaemonView) -> JsonObject:
    """Describe the daemon and its node."""
    snapshot = snapshot_of(daemon.policy)
    pending = daemon.policy.updates.pending
    return {
        "apiVersion": API_VERSION,
        "kind": "State",
        "daemon": _daemon(daemon),
        "runtime": _runtime(daemon),
        "session": _session(daemon),
        "applyUpdates": deliveries_of(daemon),
        "pendingUpdates": pending_of(daemon),
        "recordUpdates": {
            "count": pending.records,
            "oldestSeconds": round(pending.oldest_record_seconds, 3),
        },
        "policy": daemon.policy.policy.kind,
        "configuration": {
            **_configuration(daemon.configuration()),
            "leftOut": [
                {"path": one.path, "why": one.why} for one in daemon.policy.left_out
            ],
        },
        "cluster": _cluster(daemon),
        "observability": [
            {"name": one.name, "value": one.value, "source": one.source}
            for one in daemon.settings()
        ],
        "kubelet": [
            {
                "manager": one.kind,
                "policy": one.policy or "unknown",
                "why": str(one),
            }
            for one in daemon.kubelet()
        ],
        "kubeletServices": [
            {
                "service": one.service.name,
                "problem": one.problem,
                "details": one.details(),
            }
            for one in daemon.kubelet_services
        ],
        "cpuClaims": claims_of(daemon.policy),
        "verification": verification_of(daemon.verification()),
        "checkpoint": _checkpoint(daemon.checkpoints),
        "parts": [_part(one) for one in daemon.parts() if one.why or one.hangs],
        "host": host_settings_of(daemon, snapshot),
        "exclusivity": exclusivity_of(daemon.policy),
        "classes": classes_of(daemon.policy),
        "cpus": _cpus(snapshot),
        "sockets": [
            {"id": one.id, "cpus": str(one.cpus)} for one in snapshot.machine.packages
        ],
        "nodes": [_node(one, snapshot.memory) for one in snapshot.machine.nodes],
        "pools": [pool_of(pool) for pool in snapshot.pools],
        "containers": list(containers_of(snapshot, daemon)),
        "reservations": list(reservations_of(snapshot)),
        "extendedResources": [_resource(one, daemon) for one in daemon.offers.amounts],
        "nodeFeatures": _features(daemon),
        "preparedClaims": list(prepared_claims_of(daemon.policy)),
        "sandboxes": [sandbox_of(one) for one in daemon.sandboxes()],
    }


def _daemon(daemon: DaemonView) -> JsonObject:
    return {
        "version": our_version(),
        "pid": os.getpid(),
        "plugin": daemon.plugin,
        "started": time_text(daemon.started),
        "uptimeSeconds": (time.time_ns() - daemon.started) // _SECOND,
        "dryRun": daemon.policy.options.dry_run,
        "lastEvent": daemon.history.last,
    }


def _runtime(daemon: DaemonView) -> JsonObject:
    runtime = daemon.runtime()
    timeout = runtime.request_timeout if runtime.reports_timeouts else None
    return {
        "name": runtime.name,
        "version": runtime.version,
        "nri": str(runtime.level or ""),
        "requestTimeoutSeconds": timeout,
    }


def _session(daemon: DaemonView) -> JsonObject:
    sessions = daemon.sessions
    return {
        "state": sessions.state.value,
        "number": sessions.number,
        "since": time_text(sessions.since),
        "endedAt": time_text(sessions.ended_at),
        "endedWhy": sessions.ended_why,
    }


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


def _cluster(daemon: DaemonView) -> JsonObject | None:
    if daemon.cluster is None:
        return None
    return cluster_of(daemon.cluster.status, daemon.policy.state)


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


def _part(part: Part) -> JsonObject:
    return {
        "name": part.name,
        "why": part.why,
        "meanwhile": part.meanwhile,
        "isEssential": part.is_essential,
        "since": _text_of_moment(part.since) if part.why else "",
        "tries": part.tries,
        "nextTry": _text_of_moment(part.next_try) if part.next_try else "",
        "hangsSeconds": round(part.hangs, 3),
    }


def _resource(one: Amount, daemon: DaemonView) -> JsonObject:
    # What the agent writes, it reports itself.
    is_served = one.by == "device-plugin"
    return {
        "name": one.name,
        "by": one.by,
        "capacity": one.capacity,
        "value": one.value,
        "problem": daemon.offers.why_not_registered(one.name) if is_served else "",
    }


def _features(daemon: DaemonView) -> JsonObject | None:
    if not daemon.policy.config.publish.node_features:
        return None
    return {"problem": daemon.offers.features_problem}


def _text_of_moment(moment: float) -> str:
    """Format a monotonic time."""
    return _text_of_seconds(time.time() + moment - time.monotonic())


def _text_of_seconds(seconds: float) -> str:
    return time_text(int(seconds * _SECOND))


def _cpus(snapshot: PolicySnapshot) -> JsonObject:
    """Sort every online CPU into exactly one kind.

    CPUs for sharing are idle as long as no container is pinned to them.
    """
    machine = snapshot.machine
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


def _node(node: Node, ledger: MemoryLedger | None) -> JsonObject:
    """Describe a node; its granted memory is that of containers limited to it."""
    granted = None if ledger is None else ledger.usage(NodeSet.of(node.id))
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
