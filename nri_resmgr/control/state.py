"""``GET /v1/state``: what the node has, who has it, and how the daemon is."""

from __future__ import annotations

import os
import time
from typing import Any, Final

from nri_resmgr.app.configuration.status import ConfigurationStatus
from nri_resmgr.control.classes import classes_of
from nri_resmgr.control.containers import Data, View, containers_of, view_of
from nri_resmgr.control.host_settings import host_settings_of
from nri_resmgr.control.subject import API_VERSION, Checkpoints, Subject
from nri_resmgr.control.times import time_text
from nri_resmgr.control.verification import verification_of
from nri_resmgr.policy.mems import MemoryLedger
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.topology import Machine, Node
from nri_resmgr.values import CpuSet, NodeSet
from nri_resmgr.version import our_version

_SECOND: Final = 10**9  # nanoseconds


def state_of(subject: Subject) -> Data:
    """Say how everything is."""
    view, machine = view_of(subject), subject.policy.machine
    return {
        "apiVersion": API_VERSION,
        "kind": "State",
        "daemon": _daemon(subject),
        "runtime": _runtime(subject),
        "session": _session(subject),
        "policy": subject.policy.policy.kind,
        "configuration": _configuration(subject.configuration()),
        "kubelet": [
            {"manager": one.kind, "policy": one.policy, "why": str(one)}
            for one in subject.kubelet()
        ],
        "verification": verification_of(view.verification),
        "checkpoint": _checkpoint(subject.checkpoints()),
        "host": host_settings_of(subject, view),
        "classes": classes_of(subject.policy),
        "cpus": _cpus(view, machine),
        "nodes": [_node(node, subject.policy.state) for node in machine.nodes],
        "pools": [_pool(pool) for pool in view.pools],
        "containers": list(containers_of(view)),
    }


def _daemon(subject: Subject) -> Data:
    return {
        "version": our_version(),
        "pid": os.getpid(),
        "plugin": subject.plugin,
        "started": time_text(subject.started),
        "uptimeSeconds": (time.time_ns() - subject.started) // _SECOND,
        "dryRun": subject.dry_run,
        "lastEvent": subject.history.last,
    }


def _runtime(subject: Subject) -> Data:
    runtime = subject.runtime()
    return {
        "name": runtime.name,
        "version": runtime.version,
        "nri": str(runtime.level or ""),
        "requestTimeoutSeconds": runtime.request_timeout,
    }


def _session(subject: Subject) -> Data:
    sessions = subject.sessions
    return {
        "state": sessions.state.value,
        "number": sessions.number,
        "since": time_text(sessions.since),
        "lostAt": time_text(sessions.lost_at),
        "lostWhy": sessions.lost_why,
    }


def _configuration(status: ConfigurationStatus) -> Data:
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


def _checkpoint(found: Checkpoints | None) -> Data | None:
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


def _cpus(view: View, machine: Machine) -> Data:
    """Sort every online CPU into just one class.

    What containers share is idle as long as nobody runs there.
    """
    used = CpuSet.union(pin.cpus for pin in view.pins.values())
    exclusive = view.exclusive & machine.online
    reserved = CpuSet.union(pool.reserved for pool in view.pools)
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


def _node(node: Node, state: Any) -> Data:
    """Describe a node; memory counts as granted to who may be nowhere else."""
    ledger = getattr(state, "memory", None)  # not every policy counts memory
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


def _pool(pool: PoolUse) -> Data:
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
