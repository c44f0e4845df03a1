"""Limits what is read of annotations for many containers in one request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from nri_resmgr.app.annotations.reading import is_read
from nri_resmgr.log import Logger
from nri_resmgr.stub.model import Pod

log = Logger(__name__)

# Annotations belong to a pod and are read once for each of its containers, whose names
# are in keys and values. So the limit for each pod (`reduced`) is not enough where pods
# have many containers: 5,500 of them took ten times as long as a runtime waits for all
# answers to a Synchronize. The worst texts of this size take half a second.
MOST_READ_IN_ALL: Final = 256 << 10
"""Characters of keys and values of all pods, each pod's times its new containers."""

# The annotation of a webhook names the containers of a pod before they exist, and has
# room for thousands. These texts take an eighth of a second.
MOST_READ_OF_A_POD: Final = 64 << 10
"""Characters of keys and values of a new pod, times its future containers."""

# A key without a value takes time as well: it is compared with all known ones.
_KEY: Final = 32  # characters


def unread_pods(pods: Iterable[Pod], new: Mapping[str, int]) -> frozenset[str]:
    """Select the pods whose preferences are not read, and log them.

    The cheapest pods are read first, so that large texts of one pod hide none of
    another's small ones.

    Args:
        pods: All pods of the node.
        new: How many containers each pod has whose preferences are not known yet, by
            the pods' ids.

    Returns:
        The pods' ids: none on nearly all nodes.
    """
    costs = [
        (cost * count, pod.id, pod)
        for pod in pods
        if (count := new.get(pod.id, 0)) and (cost := _cost(pod))
    ]
    left = MOST_READ_IN_ALL
    unread: list[Pod] = []
    for cost, _, pod in sorted(costs, key=lambda one: one[:2]):
        left -= cost
        if left < 0:
            unread.append(pod)
    for pod in unread:
        log_unread(
            pod,
            _keys(pod),
            f"too long for the start of a session, times {new[pod.id]} containers",
            "containers that are not in the checkpoint are placed without them",
        )
    return frozenset(pod.id for pod in unread)


def is_read_ahead(pod: Pod, containers: int) -> bool:
    """Return whether the preferences of a new pod's containers are read; log if not.

    They are only those by which the pod is placed as a whole: each container's own are
    read again when it is created.

    Args:
        pod: A pod without containers.
        containers: How many it will have.
    """
    if _cost(pod) * containers <= MOST_READ_OF_A_POD:
        return True
    log_unread(
        pod,
        _keys(pod),
        f"too long to be read before the containers exist, times {containers} of them",
        "the pod is placed as a whole without them",
    )
    return False


def log_unread(pod: Pod, keys: Sequence[str], why: str, instead: str) -> None:
    """Log annotations that are not read, and what is done instead."""
    log.warning(
        "annotations.unread",
        pod=f"{pod.namespace}/{pod.name}",
        first=keys[0],
        keys=len(keys),
        why=why,
        instead=instead,
    )


def _keys(pod: Pod) -> list[str]:
    return sorted(filter(is_read, pod.annotations))


def _cost(pod: Pod) -> int:
    return sum(
        len(key) + len(value) + _KEY
        for key, value in pod.annotations.items()
        if is_read(key)
    )
