"""Kinds of Kubernetes objects: where their pod template is, if any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec


class TemplatePlace(msgspec.Struct, frozen=True):
    """The place of the pod template in objects of a kind.

    Attributes:
        groups: API groups that have the kind; empty for the core group.
        holder: Keys on the way to the mapping that has the template.
        template: Its key there; empty where the mapping is the pod itself.
        replicas: Key of the number of pods there; empty for one pod.
        reference: Key there that names another object with the template instead.
    """

    groups: tuple[str, ...]
    holder: tuple[str, ...] = ("spec",)
    template: str = "template"
    replicas: str = "replicas"
    reference: str = ""


_APPS: Final = ("apps", "extensions")
_ARGO: Final = "argoproj.io"
KINDS: Final[Mapping[str, TemplatePlace]] = {
    "Pod": TemplatePlace(("",), holder=(), template="", replicas=""),
    "PodTemplate": TemplatePlace(("",), holder=(), replicas=""),
    "Deployment": TemplatePlace(_APPS),
    "ReplicaSet": TemplatePlace(_APPS),
    "StatefulSet": TemplatePlace(_APPS),
    "DaemonSet": TemplatePlace(_APPS, replicas=""),
    "ReplicationController": TemplatePlace(("",)),
    "Job": TemplatePlace(("batch",), replicas="parallelism"),
    "CronJob": TemplatePlace(
        ("batch",), holder=("spec", "jobTemplate", "spec"), replicas="parallelism"
    ),
    "Rollout": TemplatePlace((_ARGO,), reference="workloadRef"),
}

# A ControllerRevision has a pod template, but only as history.
_WITHOUT_PODS: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset(
        (
            *("Binding", "ComponentStatus", "ConfigMap", "Endpoints", "Event"),
            *("LimitRange", "Namespace", "Node", "PersistentVolume"),
            *("PersistentVolumeClaim", "ResourceQuota", "Secret", "Service"),
            "ServiceAccount",
        )
    ),
    "apps": frozenset({"ControllerRevision"}),
    "autoscaling": frozenset({"HorizontalPodAutoscaler", "Scale"}),
    "extensions": frozenset({"Ingress", "NetworkPolicy", "PodSecurityPolicy"}),
    "policy": frozenset({"Eviction", "PodDisruptionBudget", "PodSecurityPolicy"}),
}
# Groups of Kubernetes itself, such as networking.k8s.io. Projects beside it with kinds
# that have pods use x-k8s.io, such as jobset.x-k8s.io.
_OWN_GROUPS: Final = ".k8s.io"


def group_of(api_version: str) -> str:
    """Return the API group of an ``apiVersion``; empty for the core group."""
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


def place_of(group: str, kind: str) -> TemplatePlace | None:
    """Return where a kind has its pod template; None if that is not known."""
    place = KINDS.get(kind)
    return place if place and group in place.groups else None


def is_without_pods(group: str, kind: str) -> bool:
    """Return whether objects of a kind are known to make no pods."""
    return kind in _WITHOUT_PODS.get(group, ())


def is_by_shape(group: str) -> bool:
    """Return whether pod templates in unknown kinds of a group are read.

    All kinds of the groups of Kubernetes that have some with pods are known: another
    one is a mistake.
    """
    known = {name for place in KINDS.values() for name in place.groups}
    return group not in _WITHOUT_PODS and group not in known - {_ARGO}


def is_of_kubernetes(group: str) -> bool:
    """Return whether a group is one of Kubernetes itself, whose kinds make no pods."""
    return group.endswith(_OWN_GROUPS)


def has_containers(part: object) -> bool:
    """Return whether there is a list of containers anywhere in an object."""
    return any(isinstance(one, list) and one for one in _values_of("containers", part))


def _values_of(key: str, part: object) -> Iterator[object]:
    """Yield the values of a key at any depth, which the parser limits."""
    inner: Iterable[object] = ()
    if isinstance(part, Mapping):
        if key in part:
            yield part[key]
        inner = part.values()
    elif isinstance(part, list):
        inner = part
    for one in inner:
        yield from _values_of(key, one)
