"""A pod as the kubelet describes it: names and amounts, as texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

_NONE: Mapping[str, str] = {}


class Resources(msgspec.Struct, frozen=True):
    """Requests and limits: quantities by the name of the resource."""

    requests: Mapping[str, str] = _NONE
    limits: Mapping[str, str] = _NONE

    def texts(self) -> Iterator[str]:
        """Yield all texts."""
        for amounts in (self.requests, self.limits):
            for name, amount in amounts.items():
                yield name
                yield amount


class KubeletContainer(msgspec.Struct, frozen=True):
    """A container of a pod.

    Attributes:
        is_init: Whether it is an init container, or a sidecar.
        is_sidecar: Whether it is an init container that keeps running.
        desired: Its resources as the pod's author has them now.
        allocated: Requests that the kubelet has reserved for it; None if unknown. After
            a resize they follow *desired*, as soon as the kubelet admits it.
        actual: Its resources as far as the runtime has them; None if unknown. They
            follow *allocated*.
    """

    name: str
    is_init: bool = False
    is_sidecar: bool = False
    desired: Resources = Resources()
    allocated: Mapping[str, str] | None = None
    actual: Resources | None = None

    def texts(self) -> Iterator[str]:
        """Yield all texts."""
        yield self.name
        yield from self.desired.texts()
        for name, amount in (self.allocated or {}).items():
            yield name
            yield amount
        if self.actual is not None:
            yield from self.actual.texts()


class KubeletPod(msgspec.Struct, frozen=True):
    """A pod of the kubelet's Pods API, without anything that is not used.

    Attributes:
        resources: Of the pod itself; None without any.
        priority: Of the pod, as its class has it; None without one.
    """

    uid: str
    namespace: str
    name: str
    containers: tuple[KubeletContainer, ...] = ()
    resources: Resources | None = None
    priority: int | None = None

    @property
    def size(self) -> int:
        """About as many bytes as it takes.

        Names of resources and most amounts are the same in many pods, and kept once.
        """
        texts = [self.uid, self.namespace, self.name]
        for one in self.containers:
            texts += one.texts()
        if self.resources is not None:
            texts += self.resources.texts()
        return 500 + 800 * len(self.containers) + sum(len(text) + 60 for text in texts)
