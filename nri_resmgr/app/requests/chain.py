"""The sources in their order, and the check of what they say."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final, Protocol

import msgspec

from nri_resmgr.app.requests.pod_requests import PodRequests
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

# Asked at each creation, and most containers are replicas.
_reconstructed: Final = lru_cache(maxsize=256)(reconstruct)


class RequestSource(Protocol):
    """Knows what containers ask for from the pod's own words, not from cgroups."""

    def pod_requests(self, pod: Pod) -> PodRequests | None:
        """Say what the containers of *pod* ask for; None where nothing is known.

        Asked at every creation of a container: answer at once.
        """

    def forget(self, pod: str) -> None:
        """Drop what is known of a pod that is gone."""

    def keep_only(self, pods: Collection[str]) -> None:
        """Drop what is known of other pods: nobody may have told of their end."""


class RequestSources:
    """Asks one source after the other, and believes none that is contradicted.

    Args:
        sources: The one that is most to be trusted first. Cgroup values come after
            the last.
        capacity: The node's memory, for which OOM scores are made; 0 is unknown.
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
        """How many containers, or whole pods, a source was wrong about so far."""
        return self._count

    def requests_of(
        self, pod: Pod, name: str, values: CgroupValues, qos: QosClass
    ) -> Requests:
        """Say what a container asks for.

        Args:
            pod: Its pod.
            name: Its name in the pod.
            values: What its OCI spec says.
            qos: Of its pod.
        """
        for source in self._sources:
            told = source.pod_requests(pod)
            if told is not None and (requests := told.of(name)):
                wrong = contradiction(
                    requests,
                    values,
                    qos,
                    self._capacity,
                    own_oom_score=told.has_own_oom_score(name),
                )
                if not wrong:
                    return requests
                self._note(pod, name, wrong)
                found = _reconstructed(values, qos, self._capacity)
                # Cgroup values do not know of these, so they are not contradicted.
                return msgspec.structs.replace(
                    found, extended=requests.extended, source=RequestOrigin.STALE
                )
        return _reconstructed(values, qos, self._capacity)

    def expected(self, pod: Pod) -> Mapping[str, Requests]:
        """Say what the containers of a new pod will ask for, by their names.

        Returns:
            Those that will run at the same time: init containers that end before the
            others begin are left out. Empty where no source knows, and where the
            pod's own shares contradict.
        """
        for source in self._sources:
            if (told := source.pod_requests(pod)) is None:
                continue
            shares = _shares(pod)
            if not shares or told.fits_shares(shares):
                return told.lasting
            self._note(pod, "", f"cpu.shares of the pod is {shares}, expected others")
            return {}
        return {}

    def forget(self, pod: str) -> None:
        """Drop what is known of a pod that is gone."""
        self._stale.pop(pod, None)
        for source in self._sources:
            source.forget(pod)

    def keep_only(self, pods: Collection[str]) -> None:
        """Drop what is known of other pods: nobody may have told of their end."""
        self._stale = {key: one for key, one in self._stale.items() if key in pods}
        for source in self._sources:
            source.keep_only(pods)

    def _note(self, pod: Pod, name: str, why: str) -> None:
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
