"""Scopes of annotations: a container, all containers of a pod."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class MemoryAnnotation(msgspec.Struct, frozen=True):
    """An annotation that applies to a container."""

    key: str
    value: str


def narrowest(
    annotations: Mapping[str, str], key: str, container: str
) -> MemoryAnnotation | None:
    """Return the annotation ``KEY/container.NAME``, else ``KEY/pod``, else ``KEY``."""
    return next((found[0] for found in by_scope(annotations, (key,), container)), None)


def by_scope(
    annotations: Mapping[str, str], keys: tuple[str, ...], container: str
) -> list[tuple[MemoryAnnotation, ...]]:
    """Return the annotations that apply to a container, the narrowest scope first.

    Returns:
        For each scope with any of *keys* its annotations, in the order of *keys*.
    """
    scopes = [
        tuple(
            MemoryAnnotation(full, annotations[full])
            for key in keys
            if (full := key + scope) in annotations
        )
        for scope in (f"/container.{container}", "/pod", "")
    ]
    return [found for found in scopes if found]
