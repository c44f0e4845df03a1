"""``GET /v1/host``: pressure, used memory and busy CPUs of the machine."""

from __future__ import annotations

import msgspec

from nri_resmgr.control.daemon_view import API_VERSION, DaemonView
from nri_resmgr.host.cpu_time import BadCpuTimes, read_ticks
from nri_resmgr.host.machine.nodes import used_memory
from nri_resmgr.host.pressure import Pressure, Stall, read_pressure
from nri_resmgr.host.tree import Tree
from nri_resmgr.values.documents import JsonObject


def host_of(daemon: DaemonView) -> JsonObject:
    """Read pressure, used memory and times of CPUs from the kernel.

    Raises:
        HostError: A file exists and cannot be read.
    """
    nodes = daemon.policy.machine.nodes
    return {
        "apiVersion": API_VERSION,
        "kind": "Host",
        "pressure": {
            name: _pressure(one) for name, one in read_pressure(daemon.tree).items()
        },
        "nodes": [
            {"id": node.id, "used": used_memory(daemon.tree, node.id)} for node in nodes
        ],
        "cpus": _cpus(daemon.tree),
    }


def _cpus(tree: Tree) -> list[JsonObject]:
    try:
        ticks = read_ticks(tree)
    except BadCpuTimes:  # as in a sandbox that hides the file: the rest is known
        return []
    return [
        {"id": cpu, "busy": busy, "total": total}
        for cpu, (busy, total) in ticks.items()
    ]


def _pressure(one: Pressure) -> JsonObject:
    return {"some": _stall(one.some), "full": one.full and _stall(one.full)}


def _stall(stall: Stall) -> JsonObject:
    ten, sixty, three_hundred = msgspec.structs.astuple(stall)
    return {"avg10": ten, "avg60": sixty, "avg300": three_hundred}
