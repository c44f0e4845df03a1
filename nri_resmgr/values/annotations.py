"""Annotations of pods that apply to one container, or to all; the narrowest one counts.

A key may end with a scope: ``KEY/container.NAME`` applies to one container, ``KEY/pod``
and ``KEY`` to all of them. So do nri-plugins and CRI Resource Manager.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from nri_resmgr.values.errors import InputError

POD_SCOPE: Final = "pod"
CONTAINER_SCOPE: Final = "container."
"""Followed by the name of the container."""


class Annotation(msgspec.Struct, frozen=True):
    """An annotation that applies to a container.

    Attributes:
        key: The whole key, with its scope.
    """

    key: str
    value: str


@dataclass(eq=False)
class BadAnnotation(InputError):
    """A container is refused because of an annotation that must not be ignored.

    Attributes:
        pod: ``namespace/name``.
        why: What is wrong, and what would be accepted.
    """

    pod: str
    container: str
    key: str
    value: str
    why: str

    def __str__(self) -> str:
        return f"{self.pod}/{self.container}: annotation {self.key}: {self.why}"


def narrowest(
    annotations: Mapping[str, str], key: str, container: str
) -> Annotation | None:
    """Return the annotation ``KEY/container.NAME``, else ``KEY/pod``, else ``KEY``.

    >>> tags = {"a.io": "1", "a.io/pod": "2", "a.io/container.web": "3"}
    >>> narrowest(tags, "a.io", "web").value, narrowest(tags, "a.io", "log").value
    ('3', '2')
    """
    return next((found[0] for found in by_scope(annotations, (key,), container)), None)


def by_scope(
    annotations: Mapping[str, str], keys: tuple[str, ...], container: str
) -> list[tuple[Annotation, ...]]:
    """Return the annotations that apply to a container, the narrowest scope first.

    Returns:
        For each scope with any of *keys* its annotations, in the order of *keys*.
    """
    scopes = [
        tuple(
            Annotation(full, annotations[full])
            for key in keys
            if (full := key + scope) in annotations
        )
        for scope in (f"/{CONTAINER_SCOPE}{container}", f"/{POD_SCOPE}", "")
    ]
    return [found for found in scopes if found]
