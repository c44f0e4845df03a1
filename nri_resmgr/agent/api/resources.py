"""Kinds of objects, and the paths at which an API server has them."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

import msgspec


class Resource(msgspec.Struct, frozen=True):
    """A kind of object, in one version.

    >>> NODES.path(name="node-a")
    '/api/v1/nodes/node-a'
    >>> policies = Resource(
    ...     "config.nri", "v1alpha1", "balloonspolicies", "BalloonsPolicy", True
    ... )
    >>> policies.path("kube-system", "default", "status")
    '/apis/config.nri/v1alpha1/namespaces/kube-system/balloonspolicies/default/status'

    Attributes:
        group: The API group; empty for the core group.
        version: Such as ``v1``.
        plural: As in paths and RBAC rules.
        kind: As in objects.
        is_namespaced: Whether objects are in namespaces.
    """

    group: str
    version: str
    plural: str
    kind: str
    is_namespaced: bool

    @property
    def api_version(self) -> str:
        """The field ``apiVersion`` of objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of a collection, or of an object in it.

        Args:
            namespace: Ignored for a kind without namespaces.
            name: Of an object.
            subresource: Of an object, such as ``status``.
        """
        parts = ["apis", self.group] if self.group else ["api"]
        parts.append(self.version)
        if self.is_namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        # A name can be made of a label, and must not lead to another path.
        return "/" + "/".join(quote(part, safe="") for part in parts)


class Ref(msgspec.Struct, frozen=True):
    """One object, or its subresource, by name; it need not exist.

    Attributes:
        resource: The kind.
        name: Of the object; empty where the server makes one.
        namespace: Empty for a kind without namespaces.
        subresource: Such as ``status``.
    """

    resource: Resource
    name: str
    namespace: str = ""
    subresource: str = ""

    @property
    def path(self) -> str:
        """The path of the object, or of its collection if it has no name."""
        return self.resource.path(self.namespace, self.name, self.subresource)

    def __str__(self) -> str:
        place = f" in namespace {self.namespace}" if self.namespace else ""
        part = f"{self.subresource} of " if self.subresource else ""
        return f"{part}{self.resource.kind} {self.name}{place}"


NODES: Final = Resource("", "v1", "nodes", "Node", False)
PODS: Final = Resource("", "v1", "pods", "Pod", True)
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap", True)
EVENTS: Final = Resource("events.k8s.io", "v1", "events", "Event", True)
