"""Queries the sources of requests in order, and validates what they declare."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final, Protocol

import msgspec

from nri_resmgr.app.requests.declared_requests import DeclaredRequests
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import RequestOrigin
from nri_resmgr.policy.reconstruct import (
    CgroupValues,
    Requests,
    contradiction,
    reconstruct,
)
from nri_resmgr.stub.model import Pod
from nri_resmgr.values import Bytes, QosClass

log = Logger(__name__)

_UNKNOWN_SIZE: Final = Bytes(0)

# Called at each creation, and most containers are replicas.
_reconstructed: Final = lru_cache(maxsize=256)(reconstruct)


class RequestSource(Protocol):
    """A source of the requests that a pod declares."""

    def pod_requests(self, pod: Pod) -> DeclaredRequests | None:
        """Return the requests of a pod's containers; None where they are not known.

        Called at every creation of a container: must not wait for anything.
        """

    def forget(self, pod: str) -> None:
        """Drop what is stored of a removed pod."""

    def keep_only(self, pods: Collection[str]) -> None:
        """Drop what is stored of other pods: events of their removal may be missed."""


class RequestSources:
    """Queries sources in order, and rejects requests that cgroup values contradict.

    Args:
        sources: The most trusted one first. Cgroup values are the last resort.
        capacity: The node's memory, from which the kubelet computes OOM scores; 0 if
            unknown.
    """

    def __init__(
        self,
        sources: tuple[RequestSource, ...] = (),
        *,
        capacity: Bytes = _UNKNOWN_SIZE,
    ) -> None:
        self._sources = sources
        self._capacity = capacity
        self._stale: dict[str, set[str]] = {}
        self._count = 0

    @property
    def stale(self) -> int:
        """Number of containers and pods so far whose requests were rejected."""
        return self._count

    def requests_of(
        self, pod: Pod, name: str, values: CgroupValues, qos: QosClass
    ) -> Requests:
        """Return the requests of a container.

        Args:
            pod: Its pod.
            name: Its name in the pod.
            values: Of its OCI spec.
            qos: Of its pod.
        """
        for source in self._sources:
            declared = source.pod_requests(pod)
            if declared is not None and (requests := declared.of(name)):
                wrong = contradiction(
                    requests,
                    values,
                    qos,
                    self._capacity,
                    own_oom_score=declared.has_own_oom_score(name),
                )
                if not wrong:
                    return requests
                self._report(pod, name, wrong)
                found = _reconstructed(values, qos, self._capacity)
                # Extended resources have no cgroup values that could contradict.
                return msgspec.structs.replace(
                    found, extended=requests.extended, source=RequestOrigin.STALE
                )
        return _reconstructed(values, qos, self._capacity)

    def expected(self, pod: Pod) -> Mapping[str, Requests]:
        """Return the requests that the containers of a new pod will have, by name.

        Returns:
            Those that will run at the same time: init containers that end before the
            others begin are left out. Empty where no source knows the pod, and where
            the CPU shares of its cgroup contradict.
        """
        for source in self._sources:
            if (declared := source.pod_requests(pod)) is None:
                continue
            shares = _shares(pod)
            if not shares or declared.fits_shares(shares):
                return declared.lasting
            why = f"cpu.shares of the pod is {shares}, which its requests do not give"
            self._report(pod, "", why)
            return {}
        return {}

    def forget(self, pod: str) -> None:
        """Drop what is stored of a removed pod."""
        self._stale.pop(pod, None)
        for source in self._sources:
            source.forget(pod)

    def keep_only(self, pods: Collection[str]) -> None:
        """Drop what is stored of other pods: events of their removal may be missed."""
        self._stale = {key: one for key, one in self._stale.items() if key in pods}
        for source in self._sources:
            source.keep_only(pods)

    def _report(self, pod: Pod, name: str, why: str) -> None:
        names = self._stale.setdefault(pod.id, set())
        if name in names:
            return
        if not names:
            title = f"{pod.namespace}/{pod.name}/{name}".rstrip("/")
            log.warning("requests.stale", pod=pod.id, title=title, why=why)
        names.add(name)
        self._count += 1


def _shares(pod: Pod) -> int:
    resources = pod.linux.pod_resources if pod.linux else None
    return (resources and resources.cpu and resources.cpu.shares) or 0
