"""Which annotation of a pod speaks to a container."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class ScopedAnnotation(msgspec.Struct, frozen=True):
    """An annotation that speaks to a container.

    Attributes:
        key: As it is written in the pod.
        value: As it is written in the pod.
    """

    key: str
    value: str


def narrowest(
    annotations: Mapping[str, str], key: str, container: str
) -> ScopedAnnotation | None:
    """Find ``KEY/container.NAME``, else ``KEY/pod``, else ``KEY``."""
    return next((found[0] for found in by_scope(annotations, (key,), container)), None)


def by_scope(
    annotations: Mapping[str, str], keys: tuple[str, ...], container: str
) -> list[tuple[ScopedAnnotation, ...]]:
    """Find what speaks to a container, the narrowest scope first.

    Returns:
        For each scope that has any of *keys*, what it has, in their order.
    """
    scopes = [
        tuple(
            ScopedAnnotation(full, annotations[full])
            for key in keys
            if (full := key + scope) in annotations
        )
        for scope in (f"/container.{container}", "/pod", "")
    ]
    return [found for found in scopes if found]
