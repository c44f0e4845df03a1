"""Predicates on containers from the expressions of affinity rules."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, TypeAlias

from nri_resmgr.policy.affinity import Expression, Operator, split_key
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.values.globs import glob_pattern

Predicate: TypeAlias = Callable[[ContainerSpec], bool]
Reader: TypeAlias = Callable[[ContainerSpec], str | None]

_ANYTHING: Final = "*"
_NEVER: Final = "(?!)"  # a regular expression that nothing matches

_FIELDS: Final[dict[str, Reader]] = {
    "name": lambda spec: spec.name or None,
    "namespace": lambda spec: spec.namespace or None,
    "qosclass": lambda spec: spec.qos.value,
    "id": lambda spec: spec.id or None,
    "uid": lambda spec: spec.pod_uid or None,
    "pod/name": lambda spec: spec.pod_name or None,
    "pod/namespace": lambda spec: spec.namespace or None,
    "pod/qosclass": lambda spec: spec.qos.value,
    "pod/id": lambda spec: spec.pod or None,
    "pod/uid": lambda spec: spec.pod_uid or None,
}

_NEGATED: Final = {
    Operator.NOT_EQUAL: Operator.EQUALS,
    Operator.NOT_IN: Operator.IN,
    Operator.NOT_EXIST: Operator.EXISTS,
    Operator.MATCHES_NOT: Operator.MATCHES,
    Operator.MATCHES_NONE: Operator.MATCHES_ANY,
}


@lru_cache(maxsize=512)
def predicate_of(expression: Expression) -> Predicate:
    """Return *expression* as a predicate.

    Without the key it is false, and true for negated operators: each of these is the
    opposite of another operator for every container.

    Raises:
        UnknownAffinityKey: The key is unknown.

    Source:
        nri-plugins, docs/resource-policy/container-affinity.md.
    """
    if expression.operator is Operator.ALWAYS_TRUE:
        return lambda _spec: True
    read = reader_of(expression.key)
    positive = _NEGATED.get(expression.operator)
    test = _value_test(positive or expression.operator, expression.values)
    if positive:
        return lambda spec: (found := read(spec)) is None or not test(found)
    return lambda spec: (found := read(spec)) is not None and test(found)


@lru_cache(maxsize=512)
def reader_of(key: str) -> Reader:
    """Return a function that reads a key, with None where a container lacks it.

    A joint key exists if any of its parts does; the others count as empty.

    Raises:
        UnknownAffinityKey: The key is unknown.
    """
    parts, separator = split_key(key)
    readers = tuple(map(_reader_of_part, parts))
    if len(readers) == 1:
        return readers[0]

    def read(spec: ContainerSpec) -> str | None:
        found = [one(spec) for one in readers]
        if all(one is None for one in found):
            return None
        return separator.join(one or "" for one in found)

    return read


@lru_cache(maxsize=1024)
def is_among(namespace: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a namespace matches any of some shell patterns."""
    # Cached: called for containers at every decision, with few namespaces.
    return any(fnmatchcase(namespace, pattern) for pattern in patterns)


def _reader_of_part(part: str) -> Reader:
    if part in _FIELDS:
        return _FIELDS[part]
    where, _, name = part.removeprefix("pod/").partition("/")
    match part.startswith("pod/"), where:
        case True, "tags":
            return lambda spec: spec.pod_tags.get(name)
        case True, _:
            return lambda spec: spec.pod_labels.get(name)
        case False, "tags":
            return lambda spec: spec.tags.get(name)
        case _:
            return lambda spec: spec.labels.get(name)


def _value_test(operator: Operator, values: tuple[str, ...]) -> Callable[[str], bool]:
    match operator:
        case Operator.EXISTS:
            return lambda _found: True
        case Operator.MATCHES | Operator.MATCHES_ANY:
            pattern = re.compile("|".join(map(glob_pattern, values)) or _NEVER)
            return lambda found: pattern.match(found) is not None
        case _ if _ANYTHING in values:
            return lambda _found: True
        case _:
            return frozenset(values).__contains__
