"""Decodes the pods of the Pods API, without what no decision uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, TypeVar

from google.protobuf.message import DecodeError

from nri_resmgr.kubelet._gen import core_pb2 as pb
from nri_resmgr.kubelet.pod import KubeletContainer, KubeletPod, Resources

# An API server refuses objects of more than 1.5 MiB.
LARGEST: Final = 2 << 20
"""Bytes of a pod that is decoded; more would keep requests of the runtime waiting."""

_MOST_CONTAINERS: Final = 512
_MOST_RESOURCES: Final = 128
_LONGEST: Final = 512  # characters of a name or an amount

# Most pods of a node have the same resources, of few sizes.
_SHARED: Final = 1024

_NO_AMOUNTS: Final[Mapping[str, str]] = {}
_NO_RESOURCES: Final = Resources()
_ALWAYS: Final = "Always"

_Kept = TypeVar("_Kept")


def read_pod(data: bytes) -> KubeletPod | None:
    """Decode a pod; None for one that no kubelet has, and for one without containers.

    A deleted pod has no containers: it must not replace what is known.
    """
    if len(data) > LARGEST:
        return None
    try:
        pod = pb.Pod.FromString(data)
    except DecodeError:
        return None
    meta, spec = pod.metadata, pod.spec
    count = len(spec.containers) + len(spec.initContainers)
    texts = (meta.uid, meta.namespace, meta.name)
    if not count or count > _MOST_CONTAINERS or not _are_short(texts) or not meta.uid:
        return None
    statuses = {
        one.name: one
        for one in (
            *pod.status.containerStatuses[:_MOST_CONTAINERS],
            *pod.status.initContainerStatuses[:_MOST_CONTAINERS],
        )
    }
    try:
        containers = [
            _container(one, statuses.get(one.name), is_init=is_init)
            for group, is_init in (
                (spec.initContainers, True),
                (spec.containers, False),
            )
            for one in group
        ]
        own = _resources(spec.resources) if spec.HasField("resources") else None
    except _TooLargeError:
        return None
    return KubeletPod(
        meta.uid,
        _shared(meta.namespace),
        meta.name,
        tuple(containers),
        own,
        spec.priority if spec.HasField("priority") else None,
    )


class _TooLargeError(Exception):
    """It has more resources, or longer texts, than any pod."""


def _container(
    one: pb.Container, status: pb.ContainerStatus | None, *, is_init: bool
) -> KubeletContainer:
    if not _are_short((one.name,)):
        raise _TooLargeError
    desired = _resources(one.resources)
    allocated = _amounts(status.allocatedResources) if status else _NO_AMOUNTS
    is_known = status is not None and status.HasField("resources")
    actual = _resources(status.resources) if status and is_known else None
    return KubeletContainer(
        name=_shared(one.name),
        is_init=is_init,
        is_sidecar=is_init and one.restartPolicy == _ALWAYS,
        desired=desired,
        # All are the same but during a resize, so they are kept once.
        allocated=_one_of(desired.requests, allocated) or None,
        actual=_one_of(desired, actual),
    )


def _one_of(kept: _Kept, found: _Kept) -> _Kept:
    return kept if found == kept else found


def _resources(found: pb.ResourceRequirements) -> Resources:
    requests, limits = _amounts(found.requests), _amounts(found.limits)
    if not requests and not limits:
        return _NO_RESOURCES
    return Resources(requests, limits)


def _amounts(found: Mapping[str, pb.Quantity]) -> Mapping[str, str]:
    if not found:
        return _NO_AMOUNTS
    if len(found) > _MOST_RESOURCES:
        raise _TooLargeError
    amounts = {name: found[name].string for name in sorted(found)}
    if not _are_short(amounts) or not _are_short(amounts.values()):
        raise _TooLargeError
    return {_shared(name): _shared(amount) for name, amount in amounts.items()}


@lru_cache(maxsize=_SHARED)
def _shared(text: str) -> str:
    return text


def _are_short(texts: Iterable[str]) -> bool:
    return all(len(text) <= _LONGEST for text in texts)
