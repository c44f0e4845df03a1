"""The pods of the node as the kubelet has described them, bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Final

from nri_resmgr.kubelet.pod import KubeletPod

# The kubelet reports pods before the runtime does, which creates some at a time.
MOST_UNASKED: Final = 256
"""Pods that the runtime has not reported; the oldest ones are dropped."""

MOST_BYTES: Final = 8 << 20
"""Of all pods together; 500 pods of two containers take 1 MiB."""

LARGEST_POD: Final = 256 << 10
"""Bytes: 100 containers with 10 resources each take less."""


def _ignore(_: KubeletPod) -> None:
    """Let it be."""


class PodCache:
    """Knows pods by their UID.

    That the kubelet does not list a pod, or has deleted it, removes nothing: a kubelet
    that has just started lists none, and containers outlive it. Pods are dropped when
    the runtime has removed them.

    Attributes:
        on_change: Called with a pod that is new, or has changed.
        wanted: Set where a pod is missing that the runtime has reported.
        size: About as many bytes as all pods take.
        rejected: How many pods were not kept, for their size.
    """

    def __init__(self) -> None:
        self.on_change: Callable[[KubeletPod], None] = _ignore
        self.wanted = asyncio.Event()
        self.size = 0
        self.rejected = 0
        self._asked: dict[str, KubeletPod | None] = {}
        self._unasked: dict[str, KubeletPod] = {}
        self._missing: dict[str, None] = {}

    def __len__(self) -> int:
        return sum(pod is not None for pod in self._asked.values()) + len(self._unasked)

    def ask(self, uid: str) -> KubeletPod | None:
        """Return a pod that the runtime has reported; None, and look for it, if new."""
        if (found := self._asked.get(uid)) is not None:
            return found
        if (early := self._unasked.pop(uid, None)) is not None:
            self._asked[uid] = early
            return early
        if uid and uid not in self._asked:
            self._asked[uid] = None
            self._missing[uid] = None
            self.wanted.set()
        return None

    def put(self, pod: KubeletPod) -> None:
        """Keep what the kubelet says of a pod now."""
        if pod.size > LARGEST_POD:
            self.rejected += 1
            return
        uid, is_asked = pod.uid, pod.uid in self._asked
        old = self._asked.get(uid) if is_asked else self._unasked.get(uid)
        if old == pod:
            return
        grown = pod.size - (old.size if old is not None else 0)
        self._make_room(grown, uid)
        if self.size + grown > MOST_BYTES:
            self.rejected += 1
            return
        self.size += grown
        if is_asked:
            self._asked[uid] = pod
            self._missing.pop(uid, None)
            self.on_change(pod)
        else:
            self._unasked.pop(uid, None)
            self._unasked[uid] = pod
            if len(self._unasked) > MOST_UNASKED:
                self._drop_oldest()

    def take_missing(self) -> str:
        """Return the UID of a pod to look for; empty without any."""
        for uid in self._missing:
            del self._missing[uid]
            return uid
        self.wanted.clear()
        return ""

    def want(self, uid: str) -> None:
        """Look for a pod again, if it is still missing."""
        if uid in self._asked and self._asked[uid] is None:
            self._missing[uid] = None
            self.wanted.set()

    def forget(self, uid: str) -> None:
        """Drop a pod that the runtime has removed."""
        self._missing.pop(uid, None)
        if (pod := self._asked.pop(uid, None)) is not None:
            self.size -= pod.size

    def keep_only(self, uids: Collection[str]) -> None:
        """Drop all pods that the runtime had reported but *uids*."""
        for uid in self._asked.keys() - set(uids):
            self.forget(uid)

    def _make_room(self, grown: int, uid: str) -> None:
        while self.size + grown > MOST_BYTES and self._unasked.keys() - {uid}:
            self._drop_oldest(uid)

    def _drop_oldest(self, but: str = "") -> None:
        oldest = next(uid for uid in self._unasked if uid != but)
        self.size -= self._unasked.pop(oldest).size
