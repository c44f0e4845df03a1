"""Affinity rules: expressions that select containers, and weights."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from nri_resmgr.values import InputError, StoredValue
from nri_resmgr.values.globs import check_glob

_OWN_KEYS: Final = ("name", "namespace", "qosclass", "id", "uid")
_MAP_KEYS: Final = ("labels", "tags")
_POD: Final = "pod/"


class Operator(enum.StrEnum):
    """The comparison of a key's value; members have the words of annotations."""

    EQUALS = "Equals"
    NOT_EQUAL = "NotEqual"
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    NOT_EXIST = "NotExist"
    ALWAYS_TRUE = "AlwaysTrue"
    MATCHES = "Matches"
    MATCHES_NOT = "MatchesNot"
    MATCHES_ANY = "MatchesAny"
    MATCHES_NONE = "MatchesNone"


_ONE_VALUE: Final = (
    Operator.EQUALS,
    Operator.NOT_EQUAL,
    Operator.MATCHES,
    Operator.MATCHES_NOT,
)
_NO_VALUE: Final = (Operator.EXISTS, Operator.NOT_EXIST)
_GLOBS: Final = (
    Operator.MATCHES,
    Operator.MATCHES_NOT,
    Operator.MATCHES_ANY,
    Operator.MATCHES_NONE,
)


@dataclass(eq=False)
class UnknownAffinityKey(InputError):
    """A key of an expression, or a part of a joint key, is unknown."""

    key: str

    def __str__(self) -> str:
        return (
            f"unknown key {self.key!r}, expected {', '.join(_OWN_KEYS)}, "
            "labels/NAME or tags/NAME, or one of these behind pod/, or several "
            "joined as in :pod/name:name"
        )


@dataclass(eq=False)
class BadValueCount(InputError):
    """An operator has the wrong number of values."""

    operator: Operator
    count: int
    expected: str

    def __str__(self) -> str:
        return f"{self.operator} takes {self.expected}, not {self.count}"


class Expression(StoredValue, frozen=True):
    """A condition on containers.

    Attributes:
        key: ``name``, ``namespace``, ``qosclass``, ``id``, ``uid``,
            ``labels/KEY``, ``tags/KEY``, any of them behind ``pod/``, or several
            joined as in ``:pod/name:name``.
        operator: How the value of the key is compared.
        values: What it is compared with.
    """

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def check(self) -> None:
        """Check that the expression can be evaluated.

        Raises:
            UnknownAffinityKey: The key is unknown; `Operator.ALWAYS_TRUE` ignores it.
            BadValueCount: The operator has the wrong number of values.
            BadGlob: A value that has to be a glob is not valid.
        """
        if self.operator is Operator.ALWAYS_TRUE:
            return
        split_key(self.key)
        self._check_count()
        if self.operator in _GLOBS:
            for value in self.values:
                check_glob(value)

    def _check_count(self) -> None:
        count = len(self.values)
        if self.operator in _NO_VALUE:
            if count:
                raise BadValueCount(self.operator, count, "no values")
        elif self.operator in _ONE_VALUE:
            if count != 1:
                raise BadValueCount(self.operator, count, "exactly one value")
        elif not count:
            raise BadValueCount(self.operator, count, "at least one value")


class Affinity(StoredValue, frozen=True):
    """One affinity rule of a container.

    It prefers to be near the containers that *match*, out of those in *scope*, or out
    of its pod without one. The weight is -1000 to 1000; negative for anti-affinity.
    """

    match: Expression
    scope: Expression | None = None
    weight: int = 1


def split_key(key: str) -> tuple[tuple[str, ...], str]:
    """Split a key into its parts.

    Returns:
        The parts in full, and the separator of their values. A name with a dot that
        is no other key is that of a label.

    Raises:
        UnknownAffinityKey: A part is unknown.

    Source:
        nri-plugins, docs/resource-policy/container-affinity.md, "joint keys".

    >>> split_key(":pod/name:name")
    (('pod/name', 'name'), ':')
    >>> split_key(":,-pod/name,example.com/tier")
    (('pod/name', 'labels/example.com/tier'), '-')
    """
    if not key.startswith(":"):
        return (_full_key(key),), ""
    between, joint, parts = key[1:2], key[2:3], key[3:]
    if not (_is_separator(between) and _is_separator(joint)):
        between, joint, parts = ":", ":", key[1:]
    return tuple(map(_full_key, parts.split(between))), joint


def _full_key(part: str) -> str:
    own = part.removeprefix(_POD)
    first, _, name = own.partition("/")
    if own in _OWN_KEYS or (first in _MAP_KEYS and name):
        return part
    if "." in first:
        return f"labels/{part}" if own == part else f"{_POD}labels/{own}"
    raise UnknownAffinityKey(part)


def _is_separator(character: str) -> bool:
    return bool(character) and not character.isalnum() and character not in "/."
