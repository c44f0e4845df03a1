"""Which type of balloon a container goes into."""

from __future__ import annotations

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
from nri_resmgr.policy.matching import Predicate, predicate_of
from nri_resmgr.values.globs import glob_pattern
from nri_resmgr.values.recall import Recall


class Choice(msgspec.Struct, frozen=True):
    """A type, and what about the container made it this one."""

    kind: BalloonType
    decided: str


def is_left_alone(spec: ContainerSpec, settings: BalloonsSettings) -> bool:
    """Tell whether a container is to be neither in a balloon nor pinned."""
    if settings.preserve and _fits_any(spec, settings.preserve):
        return True
    return spec.preferences.preserve_cpus


def choose_type(spec: ContainerSpec, settings: BalloonsSettings) -> Choice:
    """Find a container's type.

    Its annotation decides; else the first type of which an expression, or a
    namespace, fits; else it is the default type.

    Raises:
        NoSuchType: The annotation names a type that there is not.

    Source:
        nri-plugins, balloons, ``chooseBalloonDef``.
    """
    if asked := spec.preferences.balloon:
        if asked not in settings.by_name:
            raise NoSuchType(spec.title or spec.id, asked, tuple(settings.by_name))
        return Choice(settings.by_name[asked], "annotation")
    for kind in settings.types:
        if kind.expressions and _fits_any(spec, kind.expressions):
            return Choice(kind, "expression")
        if kind.namespaces and matches_any(spec.namespace, kind.namespaces):
            return Choice(kind, "namespace")
    return Choice(settings.by_name[DEFAULT], "no other type")


@lru_cache(maxsize=1024)
def matches_any(text: str, patterns: tuple[str, ...]) -> bool:
    """Tell whether a text fits any of some shell patterns."""
    import re  # compiled once per document

    return any(re.match(glob_pattern(pattern), text) for pattern in patterns)


def _fits_any(spec: ContainerSpec, expressions: tuple[Expression, ...]) -> bool:
    return any(fits(spec) for fits in _predicates(expressions))


def _made(expressions: tuple[Expression, ...]) -> tuple[Predicate, ...]:
    return tuple(map(predicate_of, expressions))


# Those of all types are asked at every creation, and to hash them takes longer.
_predicates: Final = Recall(_made, most=256)
