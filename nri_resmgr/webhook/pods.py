"""What is read of a pod, and the annotation with the requests of its containers."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

Amounts: TypeAlias = Mapping[str, str | int | float]

MIRROR: Final = "kubernetes.io/config.mirror"
"""The annotation of the kubelet's copy of a static pod."""

_NONE: Final[Mapping[str, str]] = {}


class Form(enum.Enum):
    """The form of the annotation; the value is its key.

    The daemon reads both.
    """

    NRI_PLUGINS = "noderesource.dev/resources"
    CRI_RM = "intel.com/resources"


class Resources(msgspec.Struct, frozen=True):
    """Requests and limits."""

    limits: Amounts | None = None
    requests: Amounts | None = None


class Container(msgspec.Struct, frozen=True, rename="camel"):
    """A container of a pod; its environment and commands are not kept."""

    name: str
    resources: Resources | None = None
    restart_policy: str | None = None


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The containers of a pod, and resources of the pod itself."""

    containers: Sequence[Container]
    init_containers: Sequence[Container] | None = None
    resources: Resources | None = None

    @property
    def all_containers(self) -> tuple[Container, ...]:
        """The init containers and the others."""
        return *(self.init_containers or ()), *self.containers


class Owner(msgspec.Struct, frozen=True):
    """An owner of an object."""

    controller: bool = False


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """What is read of an object's metadata."""

    annotations: Mapping[str, str] | None = None
    deletion_timestamp: str | None = None
    owner_references: Sequence[Owner] | None = None

    @property
    def texts(self) -> Mapping[str, str]:
        """The annotations."""
        return self.annotations or _NONE


class Pod(msgspec.Struct, frozen=True):
    """A pod, or the template of pods."""

    spec: PodSpec
    metadata: Metadata = Metadata()


def annotation_of(spec: PodSpec, form: Form) -> str:
    """Return the annotation with the requests of a pod's containers.

    The policy in deploy/kubernetes/options/requests-policy writes the same text in the
    form of nri-plugins.

    >>> spec = PodSpec([Container("web", Resources(requests={"cpu": "500m"}))])
    >>> annotation_of(spec, Form.NRI_PLUGINS)
    '{"containers":{"web":{"requests":{"cpu":"500m"}}}}'
    """
    init = {
        one.name: _of_container(one, is_init=True) for one in spec.init_containers or ()
    }
    content: dict[str, object] = {
        "containers": {one.name: _of_container(one) for one in spec.containers}
    }
    # CRI Resource Manager's has both sections always.
    if init or form is Form.CRI_RM:
        content["initContainers"] = init
    if pod := _of_resources(spec.resources):
        content["pod"] = pod
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False)


def _of_container(container: Container, *, is_init: bool = False) -> dict[str, object]:
    content: dict[str, object] = dict(_of_resources(container.resources))
    if is_init and container.restart_policy is not None:
        content["restartPolicy"] = container.restart_policy
    return content


def _of_resources(resources: Resources | None) -> dict[str, dict[str, str]]:
    if resources is None:
        return {}
    both = {"limits": resources.limits, "requests": resources.requests}
    return {
        key: {name: str(amounts[name]) for name in sorted(amounts)}
        for key, amounts in both.items()
        if amounts is not None
    }
