"""A pod as the runtime describes it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nri_resmgr.stub.model.contents import EMPTY
from nri_resmgr.stub.model.oci import Namespace
from nri_resmgr.stub.model.resources import LinuxResources


class LinuxPod(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The Linux part of a pod.

    `pod_overhead` and `pod_resources` are what the kubelet reported at creation, sums
    over all containers as cgroup values; runtimes never refresh them.
    """

    pod_overhead: LinuxResources | None = None
    pod_resources: LinuxResources | None = None
    cgroup_parent: str = ""
    cgroups_path: str = ""
    namespaces: tuple[Namespace, ...] = ()
    resources: LinuxResources | None = None


class Pod(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A pod sandbox; in stop and remove events it may have nothing but its id."""

    id: str = ""
    name: str = ""
    uid: str = ""
    namespace: str = ""
    labels: Mapping[str, str] = EMPTY
    annotations: Mapping[str, str] = EMPTY
    runtime_handler: str = ""
    linux: LinuxPod | None = None
    pid: int = 0
    ips: tuple[str, ...] = ()
