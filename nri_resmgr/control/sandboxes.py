"""Sandboxes of virtual machines, as JSON data."""

from __future__ import annotations

from nri_resmgr.app.running.sandboxes import SandboxStatus
from nri_resmgr.policy.events import Pin
from nri_resmgr.values.documents import JsonObject


def sandbox_of(one: SandboxStatus) -> JsonObject:
    """Describe the sandbox of a virtual machine."""
    namespace, _, name = one.pod.title.partition("/")
    return {
        "namespace": namespace,
        "pod": name,
        "podId": one.pod.id,
        "handler": one.pod.handler,
        "cgroup": one.pod.cgroup,
        "decided": _pin_of(one.wanted),
        "inForce": one.in_force and _pin_of(one.in_force),
        "why": one.why,
    }


def _pin_of(pin: Pin) -> JsonObject:
    return {"cpus": str(pin.cpus), "mems": str(pin.mems)}
