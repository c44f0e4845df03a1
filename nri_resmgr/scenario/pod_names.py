"""Names of the pods of manifests, so that no two objects have pods of the same name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count

import msgspec
from msgspec.structs import replace

from nri_resmgr.scenario.steps import ByShape, RunPods


class OwnedPods(msgspec.Struct, frozen=True):
    """The pods of one template of an object.

    Attributes:
        kind: Of the object.
        name: Of the object.
        is_generated: Whether its name is a ``generateName`` only.
        owners: Kind and name of each object that has made this one.
        node: The node that a pod is bound to; empty for other objects.
        since: When a pod was started, or else created, in RFC 3339; empty if unknown.
        shape: Describes an object whose templates were found by their shape; set in the
            first of its templates only.
    """

    kind: str
    name: str
    pods: RunPods
    is_generated: bool = False
    owners: tuple[tuple[str, str], ...] = ()
    node: str = ""
    since: str = ""
    shape: ByShape | None = None

    @property
    def title(self) -> str:
        """Kind, namespace and name of the object."""
        return f"{self.kind} {self.pods.namespace}/{self.name}"

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the pods."""
        return next(iter(self.pods.containers.values())).pod_labels or {}


def kept_apart(found: Iterable[OwnedPods]) -> Iterator[RunPods]:
    """Yield the steps, each with names of pods that no other object has.

    A generated name gets a number; one that another object's pods have gets the kind.
    Two objects of a kind with the same name stay as they are: that is a mistake.
    """
    taken: set[tuple[str, str]] = set()
    objects: set[tuple[str, str, str]] = set()
    for one in found:
        pods = one.pods
        this = one.kind, pods.namespace, pods.name
        if one.is_generated or this not in objects:
            options = (replace(pods, name=name) for name in _names_for(one))
            pods = next(each for each in options if not _names_in(each) & taken)
        objects.add(this)
        taken |= _names_in(pods)
        yield pods


def _names_for(one: OwnedPods) -> Iterator[str]:
    name, kind = one.pods.name, one.kind.lower()
    if one.is_generated:
        return (f"{name}generated-{number}" for number in count(1))
    more = (f"{name}-{kind}-{number}" for number in count(2))
    return chain((name, f"{name}-{kind}"), more)


def _names_in(pods: RunPods) -> set[tuple[str, str]]:
    """Return the names of a step and of its pods, with their namespace."""
    return {(pods.namespace, name) for name in (pods.name, *pods.pod_names)}
