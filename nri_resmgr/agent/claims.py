"""Claims of CPUs: allocations for the daemon, and the node's devices for the scheduler.

A node cannot watch its claims: no field of a claim that an API server selects by names
the node. So the agent reads the one that the daemon asks for, as kubelets and drivers
do, and nothing where no pod has one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Final

from nri_resmgr.agent.api import (
    ApiClient,
    ApiError,
    Changed,
    News,
    Ref,
    Removed,
    Resource,
    Synced,
    Target,
)
from nri_resmgr.agent.api.errors import Forbidden, KindMissing, ObjectMissing
from nri_resmgr.agent.daemon_state import ClaimDevice, DaemonClaims, WantedClaim
from nri_resmgr.agent.spool_folder import SpoolFolder
from nri_resmgr.agent.watch_problems import WatchProblems
from nri_resmgr.log import Logger
from nri_resmgr.spool import CLAIMS, SpoolHeader
from nri_resmgr.values.documents import JsonObject

log = Logger(__name__)

RESOURCE_CLAIMS: Final = Resource(
    "resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", True
)
RESOURCE_SLICES: Final = Resource(
    "resource.k8s.io", "v1", "resourceslices", "ResourceSlice", False
)

CAPACITY: Final = "cpu"
"""Name of the consumable capacity; its domain is that of the driver."""

CAPACITY_PAUSE: Final = 5.0
"""Seconds between two writes of which only capacities differ."""

_AGAIN: Final = 1.0  # seconds until something is read that was not there

# An answer that will be the same: the kubelet asks again anyway.
_FINAL: Final = (Forbidden, KindMissing, ObjectMissing)


class ClaimHandOver:
    """Answers what the daemon asks about claims, by the spool.

    Args:
        api: The client.
        spool: The folder.
        node: Name of the node.
        found: Returns what the daemon asks for; None while it does not answer.
        changed: Set when this may have changed.
    """

    def __init__(
        self,
        api: ApiClient,
        spool: SpoolFolder,
        node: str,
        found: Callable[[], DaemonClaims | None],
        changed: asyncio.Event,
    ) -> None:
        self._api = api
        self._spool = spool
        self._node = node
        self._found = found
        self._changed = changed
        self._answers: dict[str, JsonObject] = {}

    async def run(self) -> None:
        """Answer until cancelled."""
        self._changed.set()
        while True:
            await self._changed.wait()
            self._changed.clear()
            found = self._found()
            if found is None or not found.driver:
                continue
            missing = [one for one in found.wanted if one.ask not in self._answers]
            answers = await asyncio.gather(
                *(self._answer(one, found.driver) for one in missing)
            )
            wanted = {one.ask for one in found.wanted}
            known = {**self._answers, **{one["ask"]: one for one in answers if one}}
            self._answers = {ask: one for ask, one in known.items() if ask in wanted}
            header = SpoolHeader(kind="ResourceClaimList", node=self._node)
            text = json.dumps(list(self._answers.values()))
            self._spool.write(CLAIMS, header, text)
            if not all(answers):
                asyncio.get_running_loop().call_later(_AGAIN, self._changed.set)

    async def _answer(self, wanted: WantedClaim, driver: str) -> JsonObject | None:
        """Return the answer to an ask; None where the API server gives none now."""
        try:
            ref = Ref(RESOURCE_CLAIMS, wanted.name, wanted.namespace)
            found = await self._api.get(ref)
        except ApiError as error:
            log.warning("agent.no-claim", claim=str(wanted), why=str(error))
            if isinstance(error, _FINAL):
                return {**_head_of(wanted), "why": str(error)}
            return None
        if found.uid != wanted.uid:
            why = "the cluster has another claim of this name by now"
            return {**_head_of(wanted), "why": why}
        return answer_of(wanted, found.body, driver, self._node)


def answer_of(
    wanted: WantedClaim, claim: JsonObject, driver: str, node: str
) -> JsonObject:
    """Return what the daemon needs of a claim, or why it cannot have it."""
    allocation = (claim.get("status") or {}).get("allocation")
    if not allocation:
        return {**_head_of(wanted), "why": "the scheduler has not allocated it"}
    results = (allocation.get("devices") or {}).get("results") or []
    mine = [one for one in results if one.get("driver") == driver]
    others = {one.get("pool") for one in mine} - {node}
    if others:
        pools = ", ".join(sorted(map(str, others)))
        return {**_head_of(wanted), "why": f"it has devices of node {pools}"}
    return {**_head_of(wanted), "results": [_result_of(one) for one in mine]}


def _head_of(wanted: WantedClaim) -> JsonObject:
    return {
        "ask": wanted.ask,
        "namespace": wanted.namespace,
        "name": wanted.name,
        "uid": wanted.uid,
    }


def _result_of(result: JsonObject) -> JsonObject:
    consumed = result.get("consumedCapacity") or {}
    driver = result.get("driver")
    cpus = consumed.get(CAPACITY) or consumed.get(f"{driver}/{CAPACITY}") or ""
    return {
        # A subrequest is named REQUEST/SUBREQUEST; the kubelet takes it as it is.
        "request": result.get("request", ""),
        "pool": result.get("pool", ""),
        "device": result.get("device", ""),
        "share": result.get("shareID") or "",
        "cpus": str(cpus),
    }


class SliceReporter:
    """Keeps the node's `ResourceSlice` as the daemon's devices are.

    A kubelet removes the slices of its node when it starts: the slice is watched, and
    written again at once.

    Args:
        api: The client.
        node: Name of the node.
        found: Returns the devices; None while the daemon does not answer.
        node_uid: Returns the UID of the Node, which owns the slice; empty if unknown.
        changed: Set when these may have changed.

    Attributes:
        problems: Why the slice cannot be watched now.
    """

    def __init__(
        self,
        api: ApiClient,
        node: str,
        found: Callable[[], DaemonClaims | None],
        node_uid: Callable[[], str],
        changed: asyncio.Event,
    ) -> None:
        self._api = api
        self._node = node
        self._found = found
        self._node_uid = node_uid
        self._changed = changed
        self._present: JsonObject | None = None  # its spec
        self._is_known = False
        self._generation = 0
        self._written_at = -CAPACITY_PAUSE
        self._sent: list[JsonObject] = []
        self._stored: list[JsonObject] = []
        self.problems = WatchProblems()

    async def watch(self, driver: str) -> None:
        """Watch the slice until cancelled."""
        target = Target(RESOURCE_SLICES, name=slice_name(self._node, driver))
        await self._api.watch(target, self._receive)

    def _receive(self, news: News) -> None:
        self.problems.note("resource slices", news)
        match news:
            case Changed(found):
                self._note(found.body.get("spec") or {})
            case Removed():
                self._present = None
            case Synced():
                self._is_known = True
        self._changed.set()

    def _note(self, spec: JsonObject) -> None:
        self._present = spec
        generation = (spec.get("pool") or {}).get("generation")
        if isinstance(generation, int):
            self._generation = max(self._generation, generation)

    async def write(self) -> float:
        """Write the slice if it differs; return seconds until it is to be tried again.

        0 if it need not be.
        """
        found, uid = self._found(), self._node_uid()
        if found is None or not self._is_known or not found.driver:
            return 0.0
        if not uid:
            return _AGAIN  # the Node is being read
        devices = [device_of(one) for one in found.devices if one.capacity]
        present = self._present
        if present is None and not devices:
            return 0.0
        if present is not None and self._is_as_wanted(present, devices):
            return 0.0
        now = asyncio.get_running_loop().time()
        rest = self._written_at + CAPACITY_PAUSE - now
        if present is not None and rest > 0:
            return rest
        name = slice_name(self._node, found.driver)
        body = slice_of(self._node, uid, found.driver, self._generation + 1, devices)
        made = await self._api.apply(Ref(RESOURCE_SLICES, name), body)
        self._written_at = now
        self._note(made.body.get("spec") or {})
        self._sent, self._stored = devices, _devices_in(self._present)
        log.info("agent.slice-written", name=name, generation=self._generation)
        return 0.0

    def _is_as_wanted(self, present: JsonObject, devices: list[JsonObject]) -> bool:
        found = _devices_in(present)
        if found == devices:
            return True
        # A server without a feature leaves fields out, and would do so each time.
        return (devices, found) == (self._sent, self._stored)


def _devices_in(spec: JsonObject | None) -> list[JsonObject]:
    return list((spec or {}).get("devices") or [])


def slice_name(node: str, driver: str) -> str:
    """Return the name of a node's slice."""
    return f"{node}-{driver}"


def slice_of(
    node: str, uid: str, driver: str, generation: int, devices: Sequence[JsonObject]
) -> JsonObject:
    """Return a slice without its name: one pool, which is the node."""
    owner = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": node,
        "uid": uid,
        "controller": True,
    }
    return {
        "metadata": {"ownerReferences": [owner]},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {
                "name": node,
                "generation": generation,
                "resourceSliceCount": 1,
            },
            "devices": list(devices),
        },
    }


def device_of(device: ClaimDevice) -> JsonObject:
    """Return a device as claims can have CPUs of it: whole ones, one at least."""
    policy = {"default": "1", "validRange": {"min": "1", "step": "1"}}
    return {
        "name": device.name,
        "attributes": {
            "resource.kubernetes.io/numaNode": {"int": device.node},
            "socketID": {"int": device.package},
            "smtEnabled": {"bool": device.smt},
        },
        "capacity": {
            CAPACITY: {"value": str(device.capacity), "requestPolicy": policy}
        },
        "allowMultipleAllocations": True,
    }
