"""A pod as the runtime describes it."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from nri_resmgr.stub.model.frozen import EMPTY, Value, as_text_map, as_texts, as_tuple
from nri_resmgr.stub.model.oci import Namespace
from nri_resmgr.stub.model.resources import LinuxResources
from nri_resmgr.values.declared import frozen


@frozen
class LinuxPod(Value):
    """The Linux part of a pod.

    `pod_overhead` and `pod_resources` are what the kubelet told at creation, sums over
    all containers as cgroup values; runtimes never refresh them.
    """

    pod_overhead: LinuxResources | None = None
    pod_resources: LinuxResources | None = None
    cgroup_parent: str = ""
    cgroups_path: str = ""
    namespaces: tuple[Namespace, ...] = attrs.field(default=(), converter=as_tuple)
    resources: LinuxResources | None = None


@frozen
class Pod(Value):
    """A pod sandbox; in stop and remove events it may have nothing but its id."""

    id: str = ""
    name: str = ""
    uid: str = ""
    namespace: str = ""
    labels: Mapping[str, str] = attrs.field(default=EMPTY, converter=as_text_map)
    annotations: Mapping[str, str] = attrs.field(default=EMPTY, converter=as_text_map)
    runtime_handler: str = ""
    linux: LinuxPod | None = None
    pid: int = 0
    ips: tuple[str, ...] = attrs.field(default=(), converter=as_texts)
