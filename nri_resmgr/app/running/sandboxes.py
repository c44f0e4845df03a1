"""Pins the sandboxes of virtual machines to where their containers are.

The threads of a virtual machine are in the cgroup of the pod's sandbox. Its containers
have no cgroups on the host.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Final, Protocol

import attrs
import msgspec

from nri_resmgr.app.background.periodic import until_tick
from nri_resmgr.app.background.threads import in_thread
from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.app.observers.policy_in_force import PolicyInForce
from nri_resmgr.app.running.delivery import PinDelivery
from nri_resmgr.app.running.vm_pods import VmPod, VmPods
from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.host.cgroups.writer import (
    CgroupWriter,
    CpusetValues,
    WriteOutcome,
    WriteResult,
)
from nri_resmgr.host.knobs.files import WritableTree
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import NO_PIN, Created, Event, Pin, Started, Updated
from nri_resmgr.values import NO_CPUS, NO_NODES, CpuSet, NodeSet

log = Logger(__name__)

# Kata writes the same files itself when a container comes, is updated or goes.
_COMPARE_AFTER: Final = 10.0  # seconds

_KATA: Final = "kata_"
_NO_PATH: Final = "the runtime reports no cgroup of the sandbox"
_NOT_FOUND: Final = "no cgroup of the sandbox is found: {}"


class SandboxedPolicy(PolicyInForce, Protocol):
    """The policy in force, pods in virtual machines, and the delivery of pins."""

    vm_pods: VmPods
    delivery: PinDelivery


class SandboxStatus(msgspec.Struct, frozen=True):
    """Where a sandbox is.

    Attributes:
        wanted: Its pin; empty if it is not pinned.
        in_force: As last written or compared; None before, and after a failure.
        why: Of a failure.
    """

    pod: VmPod
    wanted: Pin
    in_force: Pin | None = None
    why: str = ""


@attrs.define(eq=False, repr=False)
class _Sandbox:
    in_force: Pin | None = None
    was_pinned: bool = False
    why: str = ""


class SandboxPins(DecisionObserver):
    """Writes CPUs and memory nodes into the cgroups of sandboxes, after decisions.

    They are those of all containers of the pod together, of reserved places as well.
    Where one of them is not pinned, or none is left, the sandbox is not either.
    """

    def __init__(self) -> None:
        self._subject: SandboxedPolicy | None = None
        self._known: dict[str, _Sandbox] = {}
        self._touched: set[str] = set()
        self._changed = asyncio.Event()

    def decided(self, event: Event, decision: PolicyDecision) -> None:
        """Have the sandboxes compared; that of the event's pod in any case."""
        subject = self._subject
        if subject is not None and not (subject.vm_pods.present or self._known):
            return  # few nodes have any
        match event:
            case Created(spec) | Updated(spec):
                self._touched.add(spec.pod)
            case Started(key) if entry := decision.state.ledger.entries.get(key):
                self._touched.add(entry.spec.pod)
        self._changed.set()

    def statuses(self) -> Iterator[SandboxStatus]:
        """Yield where each sandbox is, in the order of their pods' creation."""
        subject = self._subject
        if subject is None:
            return
        for pod in subject.vm_pods.present.values():
            known = self._known.get(pod.id) or _Sandbox()
            yield SandboxStatus(
                pod, sandbox_pin(pod.id, subject), known.in_force, known.why
            )

    async def run(self, subject: SandboxedPolicy, tree: WritableTree) -> None:
        """Write until cancelled; call it again after an exception."""
        self._subject, writer, touched = subject, CgroupWriter(tree), None
        while True:
            self._changed.clear()
            pods = dict(subject.vm_pods.present)
            for gone in self._known.keys() - pods.keys():
                del self._known[gone]
            if series := self._series(subject, pods, touched):
                await self._write(series, writer)
                writer.keep_only(pods)
            touched = await self._touched_within(_COMPARE_AFTER if pods else None)

    async def _touched_within(self, seconds: float | None) -> frozenset[str] | None:
        """Wait for a decision; return the pods of events, or None after a time."""
        try:
            async with asyncio.timeout(seconds and until_tick(seconds)):
                await self._changed.wait()
        except TimeoutError:
            return None
        touched, self._touched = frozenset(self._touched), set()
        return touched

    def _series(
        self,
        subject: SandboxedPolicy,
        pods: Mapping[str, VmPod],
        touched: frozenset[str] | None,
    ) -> list[tuple[VmPod, Pin]]:
        """Return what to write or to compare; all that is pinned without *touched*."""
        series: list[tuple[VmPod, Pin]] = []
        for key, pod in pods.items():
            one = self._known.setdefault(key, _Sandbox())
            pin = sandbox_pin(key, subject)
            if not pin and not one.was_pinned:
                continue  # it never was: it is left as the runtime made it
            if subject.delivery.counts is None:
                self._fail(pod, subject.delivery.problem)
                continue
            one.was_pinned, pin = True, _released(pin, subject)
            if touched is None or key in touched or pin != one.in_force:
                series.append((pod, pin))
        return series

    async def _write(
        self, series: list[tuple[VmPod, Pin]], writer: CgroupWriter
    ) -> None:
        results = await in_thread(partial(_write_all, writer, series))
        for (pod, pin), result in zip(series, results, strict=True):
            if pod.id in self._known:
                self._note(pod, pin, result)

    def _note(self, pod: VmPod, pin: Pin, result: WriteResult) -> None:
        match result.outcome:
            case WriteOutcome.ABSENT:
                where = " or ".join(_paths(pod.cgroup))
                self._fail(pod, _NOT_FOUND.format(where) if where else _NO_PATH)
            case WriteOutcome.FAILED:
                self._fail(pod, result.why)
            case _:
                one = self._known[pod.id]
                one.in_force, one.why = pin, ""
                if result.outcome is WriteOutcome.WRITTEN:
                    log.info(
                        "sandbox.pinned",
                        pod=pod.id,
                        title=pod.title,
                        cpus=str(pin.cpus),
                        mems=str(pin.mems),
                        cgroup=result.folder,
                    )

    def _fail(self, pod: VmPod, why: str) -> None:
        one = self._known[pod.id]
        # One that ends is not found either, just before the runtime says so.
        is_new = one.why != why and pod.id in self._present()
        one.in_force, one.why = None, why
        if is_new:
            log.warning("sandbox.not-pinned", pod=pod.id, title=pod.title, why=why)

    def _present(self) -> Mapping[str, VmPod]:
        return self._subject.vm_pods.present if self._subject else {}


def sandbox_pin(pod: str, subject: SandboxedPolicy) -> Pin:
    """Return the CPUs and memory nodes of a pod's containers and places together.

    Returns:
        Empty ones where one of the containers is not pinned, or there is none of both.
    """
    state = subject.state
    pins = [subject.wanted(key) or NO_PIN for key in state.ledger.in_pod(pod)]
    places = [
        one.pin or NO_PIN
        for one in subject.policy.reservations(state)
        if one.spec.pod == pod
    ]
    cpus = CpuSet.union(one.cpus for one in (*pins, *places))
    mems = NodeSet.union(one.mems for one in (*pins, *places))
    return Pin(
        cpus if all(one.cpus for one in pins) else NO_CPUS,
        mems if all(one.mems for one in pins) else NO_NODES,
    )


def _released(pin: Pin, subject: SandboxedPolicy) -> Pin:
    """Return a pin with everything for what is not pinned."""
    machine = subject.machine
    return Pin(pin.cpus or machine.online, pin.mems or machine.memory_nodes)


def _write_all(
    writer: CgroupWriter, series: Iterable[tuple[VmPod, Pin]]
) -> list[WriteResult]:
    return [_write_one(writer, pod, pin) for pod, pin in series]


def _write_one(writer: CgroupWriter, pod: VmPod, pin: Pin) -> WriteResult:
    result = WriteResult(WriteOutcome.ABSENT)
    for path in _paths(pod.cgroup):
        reference = CgroupReference(pod.id, path)
        result = writer.write(reference, CpusetValues(pin.cpus, pin.mems))
        if result.outcome is not WriteOutcome.ABSENT:
            break
    return result


def _paths(path: str) -> tuple[str, ...]:
    """Return where the cgroup of a sandbox can be, by the path of its OCI spec.

    Source:
        Kata Containers, "Host cgroup management": ``kata_`` before the last part,
        unless systemd makes the cgroup.

    >>> _paths("/kubepods/pod1/abc")
    ('/kubepods/pod1/kata_abc', '/kubepods/pod1/abc')
    >>> _paths("kubepods-pod1.slice:cri-containerd:abc")
    ('kubepods-pod1.slice:cri-containerd:abc',)
    """
    folder, slash, name = path.rpartition("/")
    if not slash:
        return (path,) if path else ()
    return (f"{folder}/{_KATA}{name}", path)
