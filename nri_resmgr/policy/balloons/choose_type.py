"""The type of a container's balloon, its group and its scheduling class."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import msgspec

from nri_resmgr.policy.affinity import Expression
from nri_resmgr.policy.balloons.errors import NoSuchType
from nri_resmgr.policy.balloons.settings import (
    DEFAULT,
    BalloonsSettings,
    BalloonType,
)
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.matching import Predicate, Reader, predicate_of, reader_of
from nri_resmgr.values.globs import glob_pattern
from nri_resmgr.values.identity_cache import IdentityCache
from nri_resmgr.values.scheduling import SchedulingClass

# ${pod/labels/a-b} or $pod/labels/a-b: as nri-plugins' tests write them.
_KEY: Final = re.compile(r"\$(?:\{([^}]*)\}|([A-Za-z](?:[\w./-]*\w)?))", re.ASCII)


class TypeChoice(msgspec.Struct, frozen=True):
    """The type of a container's balloon, and what decided on it."""

    kind: BalloonType
    decided: str


def is_preserved(spec: ContainerSpec, settings: BalloonsSettings) -> bool:
    """Return whether a container keeps the CPUs it has: no balloon, no pinning."""
    if settings.preserve and _matches_expression(spec, settings.preserve):
        return True
    return spec.preferences.preserve_cpus


def choose_type(spec: ContainerSpec, settings: BalloonsSettings) -> TypeChoice:
    """Find a container's type.

    Its annotation decides; else the first type with a matching expression or
    namespace; else it is the default type.

    Raises:
        NoSuchType: The annotation names an unknown type.

    Source:
        nri-plugins, balloons, ``chooseBalloonDef``.
    """
    if requested := spec.preferences.balloon:
        if requested not in settings.by_name:
            known = tuple(settings.by_name)
            raise NoSuchType(spec.title or spec.id, requested, known)
        return TypeChoice(settings.by_name[requested], "annotation")
    for kind in settings.types:
        if kind.expressions and _matches_expression(spec, kind.expressions):
            return TypeChoice(kind, "expression")
        if kind.namespaces and matches_any(spec.namespace, kind.namespaces):
            return TypeChoice(kind, "namespace")
    return TypeChoice(settings.by_name[DEFAULT], "no other type")


def group_of(spec: ContainerSpec, template: str) -> str:
    """Expand a `group_by` template; a key that the container has not is empty.

    Raises:
        BadKey: The template has an unknown key.

    >>> spec = ContainerSpec("a", namespace="shop")
    >>> group_of(spec, "${namespace}-1"), group_of(spec, "ns=$pod/namespace")
    ('shop-1', 'ns=shop')
    """
    return "".join(
        part if isinstance(part, str) else part(spec) or ""
        for part in parts_of(template)
    )


@lru_cache(maxsize=64)
def parts_of(template: str) -> tuple[str | Reader, ...]:
    """Split a `group_by` template into texts and readers of keys.

    Raises:
        BadKey: It has an unknown key.
    """
    parts: list[str | Reader] = []
    at = 0
    for found in _KEY.finditer(template):
        braced, plain = found.groups()
        key = plain if braced is None else braced
        parts += (template[at : found.start()], reader_of(key))
        at = found.end()
    return (*parts, template[at:])


def scheduling_of(
    spec: ContainerSpec, settings: BalloonsSettings
) -> SchedulingClass | None:
    """Return a container's scheduling class: its annotation's, else its type's.

    None where the type that its annotation names is gone since its creation.
    """
    name = spec.preferences.scheduling_class
    if not name and settings.scheduling_classes:
        if is_preserved(spec, settings):
            return None
        try:
            name = choose_type(spec, settings).kind.scheduling_class
        except NoSuchType:
            return None
    return settings.scheduling_classes.get(name)


@lru_cache(maxsize=1024)
def matches_any(text: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a text matches any of some shell patterns."""
    return any(re.match(glob_pattern(pattern), text) for pattern in patterns)


def _matches_expression(
    spec: ContainerSpec, expressions: tuple[Expression, ...]
) -> bool:
    return any(matches(spec) for matches in _predicates(expressions))


def _compiled(expressions: tuple[Expression, ...]) -> tuple[Predicate, ...]:
    return tuple(map(predicate_of, expressions))


# By identity: every creation evaluates those of all types, and hashing them takes
# longer than evaluating.
_predicates: Final = IdentityCache(_compiled, most=256)
