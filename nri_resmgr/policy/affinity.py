"""Affinity rules: which containers attract a container, and how much."""

from __future__ import annotations

import enum

import attrs

from nri_resmgr.values.by_content import ByContent


class Operator(enum.StrEnum):
    """How the value of a key is judged; the values are the words of annotations."""

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


@attrs.frozen(eq=False, repr=False)
class Expression(ByContent):
    """A question that every container answers with yes or no.

    Attributes:
        key: ``name``, ``namespace``, ``qosclass``, ``id``, ``uid``,
            ``labels/KEY``, ``tags/KEY``, any of them behind ``pod/``, or several
            joined as in ``:pod/name:name``.
        operator: How the key's value is judged.
        values: What it is judged by.
    """

    key: str
    operator: Operator
    values: tuple[str, ...] = ()


@attrs.frozen(eq=False, repr=False)
class Affinity(ByContent):
    """One rule of a container.

    Attributes:
        match: Which containers attract, or repel.
        scope: Which containers are asked at all; None for those of the same pod.
        weight: How much; below 0 repels. -1000 to 1000.
    """

    match: Expression
    scope: Expression | None = None
    weight: int = 1
