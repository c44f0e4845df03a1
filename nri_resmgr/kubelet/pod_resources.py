"""Devices and claims of containers, as the kubelet's PodResources API has them.

`PodResources` is what is known, and what the kubelet is yet to be asked about; no
request of the runtime waits for it. `nri_resmgr.kubelet.pod_resources_client` asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from nri_resmgr.values import NO_NODES, NodeSet
from nri_resmgr.values.counts import count_text

PATIENCE: Final = 5.0
"""Seconds after which an answer is not expected any more; it may still arrive."""


class PodName(msgspec.Struct, frozen=True):
    """A pod as PodResources names it: without UID."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class AssignedDevice(msgspec.Struct, frozen=True):
    """A device of a device plugin, and the nodes that it is close to."""

    resource: str
    id: str
    nodes: NodeSet = NO_NODES


class ClaimedDevice(msgspec.Struct, frozen=True):
    """A device that a DRA driver prepared for a claim.

    Attributes:
        claim: ``namespace/name`` of the ResourceClaim.
        cdi: Its CDI devices, ``vendor/class=name``.
    """

    driver: str
    claim: str
    device: str = ""
    cdi: tuple[str, ...] = ()


class ContainerResources(msgspec.Struct, frozen=True):
    """The devices of a container."""

    devices: tuple[AssignedDevice, ...] = ()
    claimed: tuple[ClaimedDevice, ...] = ()


Answer = Mapping[str, ContainerResources]
"""The containers of a pod by name; init containers that end are not listed."""


class Wish(msgspec.Struct, frozen=True):
    """A pod to ask about. The UID keeps two pods of the same name apart."""

    pod: PodName
    uid: str


class _Known:
    """What is known of a present pod."""

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.answer: Answer | None = None
        self.is_awaited = True
        self.timer: asyncio.TimerHandle | None = None


class PodResources:
    """What the kubelet has answered about the pods of the runtime.

    Its methods are called in the event loop. Pods are kept until `forget`: their number
    is that of the runtime's pods.

    Args:
        patience: Seconds until a missing answer is not expected any more.

    Attributes:
        on_change: Called with a pod once its answer has arrived, or is no longer
            expected.
        asks_all: Whether the devices of all containers are to be known, and not only
            of those for which there is no other way.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self.on_change: Callable[[PodName, str], None] = lambda *_: None
        self.asks_all = True
        self._patience = patience
        self._pods: dict[PodName, _Known] = {}
        self._queue: dict[PodName, str] = {}  # in the order of asking
        self._wake = asyncio.Event()

    # For the plugin.

    def switch(self, *, asks_all: bool) -> None:
        """Ask about all pods from now on, or only where it is inevitable."""
        self.asks_all = asks_all
        self._wake.set()

    def expect(self, pod: PodName, uid: str) -> None:
        """Have the kubelet asked about a pod that the runtime has, once."""
        known = self._pods.get(pod)
        if known is not None and known.uid == uid:
            return
        self.forget(pod)
        known = self._pods[pod] = _Known(uid)
        loop = asyncio.get_running_loop()
        known.timer = loop.call_later(self._patience, self._give_up, pod, uid)
        self.ask(Wish(pod, uid))

    def of(self, pod: PodName, uid: str) -> Answer | None:
        """Return what the kubelet has answered about a pod; None without an answer."""
        known = self._pods.get(pod)
        return known.answer if known is not None and known.uid == uid else None

    def awaits(self, pod: PodName, uid: str) -> bool:
        """Return whether an answer is still expected soon."""
        known = self._pods.get(pod)
        return known is not None and known.uid == uid and known.is_awaited

    def forget(self, pod: PodName, uid: str | None = None) -> None:
        """Drop a pod that is gone, unless another one has its name now."""
        known = self._pods.get(pod)
        if known is None or uid not in (None, known.uid):
            return
        if known.timer is not None:
            known.timer.cancel()
        del self._pods[pod]
        self._queue.pop(pod, None)

    def keep_only(self, pods: Iterable[tuple[PodName, str]]) -> None:
        """Drop the pods that the runtime no longer has."""
        present = dict(pods)
        for pod in [one for one in self._pods if one not in present]:
            self.forget(pod)

    def summary(self) -> str:
        """Return what is known, for people."""
        answers = [one.answer for one in self._pods.values() if one.answer is not None]
        devices = sum(len(one.devices) for found in answers for one in found.values())
        return (
            f"{len(answers)} of {count_text(len(self._pods), 'pod')}, "
            f"{count_text(devices, 'device')}"
        )

    # For the client.

    def wishes(self) -> tuple[Wish, ...]:
        """Return all pods without an answer."""
        return tuple(
            Wish(pod, known.uid)
            for pod, known in self._pods.items()
            if known.answer is None
        )

    async def needed(self) -> None:
        """Wait until pods of any kind, or a present one, are to be asked about."""
        while not (self.asks_all or self._queue):
            self._wake.clear()
            await self._wake.wait()

    async def next_wish(self) -> Wish:
        """Wait for a pod to ask about."""
        while not self._queue:
            self._wake.clear()
            await self._wake.wait()
        pod = next(iter(self._queue))
        return Wish(pod, self._queue.pop(pod))

    def ask_later(self, wish: Wish, delay: float) -> None:
        """Have a pod asked about again, if it is still there."""
        asyncio.get_running_loop().call_later(delay, self.ask, wish)

    def answered(self, wish: Wish, answer: Answer) -> None:
        """Keep the answer to a question, if the pod is still there."""
        known = self._pods.get(wish.pod)
        if known is None or known.uid != wish.uid:
            return
        known.answer = answer
        self._queue.pop(wish.pod, None)
        self._settled(known)
        self.on_change(wish.pod, wish.uid)

    def ask(self, wish: Wish) -> None:
        """Have a pod asked about, if it is still there and has no answer."""
        known = self._pods.get(wish.pod)
        if known is not None and known.uid == wish.uid and known.answer is None:
            self._queue[wish.pod] = wish.uid
            self._wake.set()

    def _give_up(self, pod: PodName, uid: str) -> None:
        known = self._pods.get(pod)
        if known is None or known.uid != uid or not known.is_awaited:
            return
        self._settled(known)
        self.on_change(pod, uid)

    @staticmethod
    def _settled(known: _Known) -> None:
        known.is_awaited = False
        if known.timer is not None:
            known.timer.cancel()
            known.timer = None
