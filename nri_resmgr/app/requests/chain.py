"""Sources of requests: queried in order, and validated."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Final, Protocol

import msgspec

from nri_resmgr.app.requests.cgroup_values import without_amounts
from nri_resmgr.app.requests.declared_requests import (
    NOTHING_DECLARED,
    DeclaredRequests,
)
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import (
    EXACT_ORIGINS,
    OF_KUBELET,
    ContainerSpec,
    RequestOrigin,
)
from nri_resmgr.policy.reconstruct import (
    CgroupValues,
    Requests,
    contradiction,
    reconstruct,
    resized,
)
from nri_resmgr.stub.model import Pod
from nri_resmgr.values import Bytes, QosClass

log = Logger(__name__)

# Of nri-plugins' webhook and of CRI-RM's; the first one that a pod has is read.
ANNOTATIONS: Final = ("noderesource.dev/resources", "intel.com/resources")

# The containers of a pod come within seconds of each other. Results are not kept until
# their pod is removed: one of 32 KiB becomes 120 KiB of objects.
_RECENT_PODS: Final = 8

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
        """Drop what is stored of other pods."""


class AnnotationSource:
    """Reads the annotation of a webhook.

    An annotation that cannot be read is logged and ignored.
    """

    def __init__(self) -> None:
        self._read = lru_cache(maxsize=_RECENT_PODS)(_read)

    def pod_requests(self, pod: Pod) -> DeclaredRequests | None:
        """Return the requests of a pod's containers; None without an annotation."""
        for key in ANNOTATIONS:
            if (text := pod.annotations.get(key)) is not None:
                return self._read(f"{pod.namespace}/{pod.name}", pod.id, key, text)
        return None

    def forget(self, pod: str) -> None:
        """Keep the last few pods that were read."""

    def keep_only(self, pods: Collection[str]) -> None:
        """Keep the last few pods that were read."""


def _read(title: str, pod: str, key: str, text: str) -> DeclaredRequests | None:
    # Late: on the start path, and most nodes have no webhook.
    from nri_resmgr.app.requests.webhook import read_or_warn

    return read_or_warn(title, pod, key, text)


class Seen(msgspec.Struct, frozen=True):
    """The values of a container at its last event."""

    values: CgroupValues
    qos: QosClass


class SeenPod:
    """What a source that knows a pod later is compared with.

    Attributes:
        pod: Without labels and annotations.
        containers: By name. Of containers with the same name only one lives.
    """

    def __init__(self, pod: Pod) -> None:
        self.pod = _bare(pod)
        self.containers: dict[str, Seen] = {}


class _Claims(msgspec.Struct, frozen=True):
    """What a source says of a container.

    Attributes:
        requests: What it may ask for, the most likely first.
        own_oom_score: See `contradiction`.
    """

    requests: tuple[Requests, ...]
    own_oom_score: bool

    @property
    def source(self) -> RequestOrigin:
        """The origin of the amounts."""
        return self.requests[0].source


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
        self._reported: set[str] = set()  # pods whose requests were rejected
        # Containers by pod, as source and name: what differs later is a resize. The
        # kubelet also creates the next container of a resized pod with the new values.
        self._agreed: dict[str, set[tuple[bool, str]]] = {}
        self._seen: dict[str, SeenPod] = {}

    def change_capacity(self, capacity: Bytes) -> None:
        """Compute with another amount of memory."""
        self._capacity = capacity

    def prepend(self, source: RequestSource) -> None:
        """Query *source* before all others, for the known pods at once."""
        self._sources = (source, *self._sources)
        for seen in self._seen.values():
            source.pod_requests(seen.pod)

    def requests_of(
        self,
        pod: Pod,
        name: str,
        values: CgroupValues,
        qos: QosClass,
        known: ContainerSpec | None = None,
    ) -> Requests:
        """Return the requests of a container; *known* is as it was until now."""
        self._note(pod, name, Seen(values, qos), known)
        rejected: tuple[str, Requests] | None = None
        for claims in self._claims(pod, name, known):
            found, wrong = self._first_that_agrees(claims, values, qos)
            agreed = self._agreed.setdefault(pod.id, set())
            key = (claims.source in OF_KUBELET, name)
            if found is not None or _was_exact(known, claims.source):
                agreed.add(key)
            if found is not None:
                return found
            if key in agreed:
                return resized(claims.requests[0], values, qos)
            rejected = rejected or (wrong, claims.requests[0])
        plain = _reconstructed(values, qos, self._capacity)
        if rejected is None:
            return plain
        wrong, requests = rejected
        self._report(pod, name, wrong)
        # No cgroup values could contradict these two.
        return msgspec.structs.replace(
            plain,
            extended=requests.extended,
            priority=requests.priority,
            source=_stale(requests.source),
        )

    def corrections(
        self, pod: str, adjusted: Mapping[str, ContainerSpec]
    ) -> tuple[Pod, dict[str, Requests]] | None:
        """Return the requests of a pod that a source knows by now.

        Args:
            pod: Its id.
            adjusted: Its containers with an adjustment, by name. Of one that was found
                running the runtime may have reported the adjusted values as its own.

        Returns:
            The pod without annotations, and the requests of the containers that have
            been seen, as far as they agree with their cgroup values.
        """
        if (seen := self._seen.get(pod)) is None:
            return None
        requests: dict[str, Requests] = {}
        for name, one in seen.containers.items():
            for claims in self._claims(seen.pod, name, None):
                found, _ = self._first_that_agrees(claims, one.values, one.qos)
                if found is None and name in adjusted:
                    rest = without_amounts(one.values, adjusted[name])
                    found, _ = self._first_that_agrees(claims, rest, one.qos)
                if found is not None:
                    key = (claims.source in OF_KUBELET, name)
                    self._agreed.setdefault(pod, set()).add(key)
                    requests[name] = found
                    break
        return seen.pod, requests

    def _note(
        self, pod: Pod, name: str, seen: Seen, known: ContainerSpec | None
    ) -> None:
        # Without sources nothing is forgotten, either. What shares the resources of its
        # pod is known with its part of them, which is not what the kubelet has set.
        if self._sources and pod.id and not (known and known.shares_budget):
            found = self._seen.get(pod.id)
            if found is None:
                found = self._seen[pod.id] = SeenPod(pod)
            elif pod.uid and found.pod.linux != pod.linux:
                found.pod = _bare(pod)  # its own resources were changed
            found.containers[name] = seen

    def _claims(
        self, pod: Pod, name: str, known: ContainerSpec | None
    ) -> Iterator[_Claims]:
        answers = [
            _Claims(requests, declared.has_own_oom_score(name))
            for source in self._sources
            if (declared := source.pod_requests(pod)) is not None
            if (requests := declared.claims(name))
        ]
        # After a restart the kubelet is asked anew; until then it counts what it said.
        has_said = known is not None and known.own_source in OF_KUBELET
        if known and has_said and not any(one.source in OF_KUBELET for one in answers):
            yield _Claims((_requests_in(known),), own_oom_score=False)
        yield from answers

    def _first_that_agrees(
        self, claims: _Claims, values: CgroupValues, qos: QosClass
    ) -> tuple[Requests | None, str]:
        """Return the first claim that agrees, and the first contradiction."""
        first = ""
        for requests in claims.requests:
            wrong = contradiction(
                requests,
                values,
                qos,
                self._capacity,
                own_oom_score=claims.own_oom_score,
            )
            if not wrong:
                return requests, first
            first = first or wrong
        return None, first

    def declared(self, pod: Pod) -> DeclaredRequests:
        """Return the requests that a new pod declares for its containers.

        Returns:
            None where no source knows the pod, and where the CPU shares of its cgroup
            contradict.
        """
        for source in self._sources:
            if (declared := source.pod_requests(pod)) is None:
                continue
            shares = _shares(pod)
            if not shares or declared.fits_shares(shares):
                return declared
            why = f"cpu.shares of the pod is {shares}, which its requests do not give"
            self._report(pod, "", why)
            return NOTHING_DECLARED
        return NOTHING_DECLARED

    def forget(self, pod: str) -> None:
        """Drop what is stored of a removed pod."""
        self._reported.discard(pod)
        self._agreed.pop(pod, None)
        self._seen.pop(pod, None)
        for source in self._sources:
            source.forget(pod)

    def keep_only(self, pods: Collection[str]) -> None:
        """Drop what is stored of other pods: events of their removal may be missed."""
        self._reported.intersection_update(pods)
        for gone in self._agreed.keys() - set(pods):
            del self._agreed[gone]
        for gone in self._seen.keys() - set(pods):
            del self._seen[gone]
        for source in self._sources:
            source.keep_only(pods)

    def _report(self, pod: Pod, name: str, why: str) -> None:
        if pod.id not in self._reported:
            self._reported.add(pod.id)
            title = f"{pod.namespace}/{pod.name}/{name}".rstrip("/")
            log.warning("requests.stale", pod=pod.id, title=title, why=why)


def _shares(pod: Pod) -> int:
    resources = pod.linux.pod_resources if pod.linux else None
    return (resources and resources.cpu and resources.cpu.shares) or 0


def _bare(pod: Pod) -> Pod:
    return Pod(pod.id, pod.name, pod.uid, pod.namespace, linux=pod.linux)


def _was_exact(known: ContainerSpec | None, source: RequestOrigin) -> bool:
    """Return whether a source had agreed with a container, perhaps before a restart."""
    if known is None or known.source not in EXACT_ORIGINS:
        return False
    return (known.source in OF_KUBELET) == (source in OF_KUBELET)


def _requests_in(known: ContainerSpec) -> Requests:
    return Requests(
        cpu=known.request,
        cpu_limit=known.limit,
        memory=known.memory_request,
        memory_limit=known.memory_limit,
        hugepages=known.hugepages,
        extended=known.extended,
        source=known.own_source,
        priority=known.priority,
    )


def _stale(source: RequestOrigin) -> RequestOrigin:
    is_kubelet = source in OF_KUBELET
    return RequestOrigin.STALE_KUBELET if is_kubelet else RequestOrigin.STALE
