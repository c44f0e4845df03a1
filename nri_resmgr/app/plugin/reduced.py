"""Pods and containers of a Synchronize without the parts that no decision uses.

A runtime describes the whole node at once, and a pod alone may have 1.5 MB of texts.
The stub passes each object through these functions as it reads it, so that never more
than one of them is in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from nri_resmgr.app.annotations.queryable import queryable
from nri_resmgr.app.annotations.reading import is_read
from nri_resmgr.app.plugin.cpu_claims import variables_kept
from nri_resmgr.app.plugin.hints import may_give_hint
from nri_resmgr.app.plugin.reading_budget import log_unread
from nri_resmgr.app.plugin.translate import KUBELET_NAME
from nri_resmgr.app.requests import ANNOTATIONS, LONGEST_REQUESTS
from nri_resmgr.app.requests.claim_environment import claim_variables
from nri_resmgr.stub.model import Container, LinuxContainer, Pod

# A session begins with the reading of all pods, within the runtime's timeout: so much
# YAML of each of 110 pods takes 0.4 s. An affinity for each of 20 containers fits.
MOST_READ: Final = 4 << 10
"""Characters of a pod's preferences that are read."""

_MOST_KEYS: Final = 64  # four for each of 16 containers


def reduced_pod(pod: Pod) -> Pod:
    """Return *pod* with the annotations that are read, and the queryable texts."""
    texts = queryable(pod.annotations)
    return replace(
        pod,
        labels=queryable(pod.labels),
        annotations={**texts, **_read(pod, texts)},
    )


def reduced_container(container: Container) -> Container:
    """Return *container* with what its spec and its topology hints are made of."""
    name = container.labels.get(KUBELET_NAME)
    labels = queryable(container.labels)
    linux = container.linux
    return Container(
        id=container.id,
        pod_sandbox_id=container.pod_sandbox_id,
        name=container.name,
        state=container.state,
        # Too many labels before this one would have it dropped.
        labels=labels if name is None else {**labels, KUBELET_NAME: name},
        annotations=queryable(container.annotations),
        env=(*variables_kept(container.env), *claim_variables(container.env)),
        mounts=tuple([mount for mount in container.mounts if may_give_hint(mount)]),
        linux=linux
        and LinuxContainer(
            devices=linux.devices,
            resources=linux.resources,
            oom_score_adj=linux.oom_score_adj,
            cgroups_path=linux.cgroups_path,
        ),
        pid=container.pid,
        created_at=container.created_at,
        started_at=container.started_at,
    )


def _read(pod: Pod, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations that are read, as far as they are not too many.

    Args:
        pod: The pod.
        texts: Annotations that are kept in any case.
    """
    annotations = pod.annotations
    read: dict[str, str] = {}
    keys = sorted(filter(is_read, annotations))
    unread: list[str] = []
    size = 0
    for key in keys[:_MOST_KEYS]:
        value = annotations[key]
        if size + len(value) > MOST_READ:  # shorter ones may still fit
            unread.append(key)
            continue
        size += len(value)
        read[key] = value
    unread += keys[_MOST_KEYS:]
    unread = [key for key in unread if key not in texts]
    # JSON, ten times as fast to read; its requests are needed in each session.
    requests = next(filter(annotations.__contains__, ANNOTATIONS), None)
    if requests is not None and len(annotations[requests]) <= LONGEST_REQUESTS:
        read[requests] = annotations[requests]
    if unread:
        log_unread(
            pod,
            unread,
            "too long for the start of a session",
            "containers that are not in the checkpoint are placed without them",
        )
    return read
