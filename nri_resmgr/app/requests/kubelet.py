"""The kubelet's Pods API as a source of requests."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from nri_resmgr.app.requests.amounts import Misplaced, read_requests, within_pod
from nri_resmgr.app.requests.declared_requests import DeclaredRequests
from nri_resmgr.kubelet.pod import KubeletContainer, KubeletPod, Resources
from nri_resmgr.kubelet.pod_cache import PodCache
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import RequestOrigin
from nri_resmgr.policy.reconstruct import Requests
from nri_resmgr.stub.model import Pod
from nri_resmgr.values.identity_cache import IdentityCache

log = Logger(__name__)

# As for annotations: the containers of a pod come within seconds of each other.
_RECENT_PODS: Final = 8

# Of a resize. All other resources stay as they are.
_RESIZABLE: Final = ("cpu", "memory")


class KubeletSource:
    """Knows the requests of pods that the kubelet has described.

    Args:
        cache: The pods.
    """

    def __init__(self, cache: PodCache) -> None:
        self._cache = cache
        self._uids: dict[str, str] = {}
        self._read = IdentityCache(_read_or_warn, most=_RECENT_PODS)

    def pod_requests(self, pod: Pod) -> DeclaredRequests | None:
        """Return the requests of a pod's containers; None while the pod is unknown."""
        if not pod.uid:
            return None
        self._uids[pod.id] = pod.uid
        found = self._cache.ask(pod.uid)
        if found is None or (found.namespace, found.name) != (pod.namespace, pod.name):
            return None
        return self._read(found)

    def forget(self, pod: str) -> None:
        """Drop a removed pod."""
        uid = self._uids.pop(pod, "")
        # A sandbox that failed is succeeded by another one of the same pod.
        if uid and uid not in self._uids.values():
            self._cache.forget(uid)

    def keep_only(self, pods: Collection[str]) -> None:
        """Drop other pods."""
        for gone in self._uids.keys() - set(pods):
            del self._uids[gone]
        self._cache.keep_only(set(self._uids.values()))

    def sandboxes(self, uid: str) -> tuple[str, ...]:
        """Return the ids of the sandboxes of a pod."""
        return tuple(one for one, of in self._uids.items() if of == uid)


def _read_or_warn(pod: KubeletPod) -> DeclaredRequests | None:
    try:
        return requests_in(pod)
    except Misplaced as error:
        title = f"{pod.namespace}/{pod.name}"
        why = f"pod {title}, Pods API: {error}"
        log.warning("requests.unreadable", pod=pod.uid, error=why, instead="cgroup")
        return None


def requests_in(pod: KubeletPod) -> DeclaredRequests:
    """Read the requests of a pod.

    Raises:
        Misplaced: An amount is not a quantity.
    """
    own = _requests(pod.resources, "pod") if pod.resources is not None else None
    first: dict[bool, dict[str, Requests]] = {False: {}, True: {}}
    resizing: dict[str, tuple[Requests, ...]] = {}
    for one in pod.containers:
        claims = [
            replace(within_pod(_requests(each, one.name), own), priority=pod.priority)
            for each in _possible(one)
        ]
        likely, *others = dict.fromkeys(map(_key, claims))
        by_key = {_key(each): each for each in claims}
        first[one.is_init][one.name] = by_key[likely]
        if others:
            resizing[one.name] = tuple(by_key[key] for key in others)
    return DeclaredRequests(
        containers=first[False],
        init=first[True],
        sidecars=frozenset(one.name for one in pod.containers if one.is_sidecar),
        pod=own,
        resizing=resizing,
    )


def _possible(one: KubeletContainer) -> Iterable[Resources]:
    """Yield what a container may have: a resize is desired, allocated, then actual."""
    desired = one.desired
    if one.actual is not None:
        yield Resources(
            _with(desired.requests, one.actual.requests),
            _with(desired.limits, one.actual.limits),
        )
    if one.allocated is not None:
        yield Resources(
            _with(desired.requests, one.allocated),
            _allocated_limits(desired, one.allocated),
        )
    yield desired


def _allocated_limits(
    desired: Resources, allocated: Mapping[str, str]
) -> Mapping[str, str]:
    # The kubelet reports no allocated limits. One that equals its request does so in
    # each resize, as the pod keeps its QoS class.
    return {
        name: allocated[name]
        if name in _RESIZABLE
        and name in allocated
        and text == desired.requests.get(name)
        else text
        for name, text in desired.limits.items()
    }


def _with(desired: Mapping[str, str], found: Mapping[str, str]) -> Mapping[str, str]:
    others = {name: text for name, text in desired.items() if name not in _RESIZABLE}
    return others | {name: found[name] for name in _RESIZABLE if name in found}


def _requests(found: Resources, at: str) -> Requests:
    content = {"requests": found.requests, "limits": found.limits}
    return read_requests(content, at, RequestOrigin.KUBELET)


def _key(one: Requests) -> tuple[object, ...]:
    return one.cpu, one.cpu_limit, one.memory, one.memory_limit
