"""A pod's annotations to what one of its containers prefers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import attrs

from nri_resmgr.app.annotations.affinities import read_affinities
from nri_resmgr.app.annotations.deprecated import read_deprecated
from nri_resmgr.app.annotations.errors import BadAnnotation, NotAccepted
from nri_resmgr.app.annotations.keys import (
    AFFINITY_KEYS,
    KEYS,
    OTHER_POLICIES,
    Target,
)
from nri_resmgr.app.annotations.written import (
    Scope,
    Written,
    effective,
    ours,
    take_apart,
)
from nri_resmgr.policy.preferences import NO_PREFERENCES, Preferences
from nri_resmgr.topology.hint_options import ALL_HINTS, HintOptions
from nri_resmgr.values import InputError
from nri_resmgr.values.by_content import ByContent

# A pod creates several containers, and updates ask again. What is longer is rare
# enough to be read each time, and would fill the memory.
_REMEMBERED: Final = 256
_LONG: Final = 16 << 10


@attrs.frozen(eq=False, repr=False)
class Problem(ByContent):
    """An annotation that does not count, or not as its author may think.

    Attributes:
        key: As it is written in the pod.
        value: As it is written in the pod.
        why: What is wrong, and what would be accepted.
        strict: Whether the container is to be refused for it.
        pending: Whether nothing is wrong but that it has no effect yet.
    """

    key: str
    value: str
    why: str
    strict: bool = False
    pending: bool = False


@attrs.frozen(eq=False, repr=False)
class Reading(ByContent):
    """What the annotations of a pod say to one container.

    Attributes:
        preferences: For the policy.
        hints: For those who look for topology hints.
        problems: For people; the container is placed as if those did not stand there.
    """

    preferences: Preferences = NO_PREFERENCES
    hints: HintOptions = ALL_HINTS
    problems: tuple[Problem, ...] = ()


_NOTHING: Final = Reading()


def read_preferences(
    annotations: Mapping[str, str],
    container: str,
    *,
    pod: str = "",
    testing: bool = False,
    refuse: bool = True,
) -> Reading:
    """Read what a pod's annotations say to one of its containers.

    Args:
        annotations: Of the pod.
        container: The container's name in the pod.
        pod: ``namespace/name``, for people.
        testing: Whether tests may hand in topology hints.
        refuse: Whether the container can be refused; one that runs cannot.

    Raises:
        BadAnnotation: One that must not be misread means nothing, and the container
            can be refused.

    Source:
        nri-plugins, docs/resource-policy/policy/topology-aware.md; CRI Resource
        Manager, docs/policy/topology-aware.md.
    """
    found = ours(annotations)
    if not found:
        return _NOTHING
    size = sum(len(value) for _, value in found)
    read: Callable[..., Reading] = _read if size > _LONG else _remembered
    reading = read(found, container, testing)
    for one in reading.problems:
        if one.strict and refuse:
            raise BadAnnotation(pod, container, one.key, one.value, one.why)
    return reading


def _read(
    annotations: tuple[tuple[str, str], ...],
    container: str,
    testing: bool,  # noqa: FBT001 - the cache knows arguments by place only
) -> Reading:
    everything = take_apart(annotations, container)
    draft = _Draft(container)
    for one in everything:
        draft.complain_about_key(one)
    for one in effective(everything).values():
        draft.read(one, testing=testing)
    return draft.reading()


_remembered = lru_cache(maxsize=_REMEMBERED)(_read)


class _Draft:
    """A reading that grows by one annotation at a time."""

    def __init__(self, container: str) -> None:
        self._container = container
        self._preferences: dict[str, Any] = {}
        self._scopes: dict[str, Scope] = {}
        self._hints: dict[str, Any] = {}
        self._problems: list[Problem] = []

    def reading(self) -> Reading:
        wishes = self._preferences
        if wishes.get("require_isolated"):
            # A narrower preference turns the requirement into one.
            if (
                "isolated" in wishes
                and self._scopes["isolated"] < (self._scopes["require_isolated"])
            ):
                wishes["require_isolated"] = False
            else:
                wishes["isolated"] = True
        return Reading(
            Preferences(**wishes) if wishes else NO_PREFERENCES,
            HintOptions(**self._hints) if self._hints else ALL_HINTS,
            tuple(self._problems),
        )

    def complain_about_key(self, one: Written) -> None:
        if one.scope is Scope.NOWHERE:
            why = "speaks to nobody, expected /pod or /container.NAME at its end"
        elif _is_known(one.stem) or one.stem.endswith(OTHER_POLICIES):
            return
        else:
            why = _unknown(one.stem)
        self._problems.append(Problem(one.key, one.value, why))

    def read(self, one: Written, *, testing: bool) -> None:
        if not _is_known(one.stem):
            return
        try:
            if one.stem in AFFINITY_KEYS:
                self._read_affinity(one)
            else:
                self._read_value(one, testing=testing)
        except (InputError, ValueError) as error:
            # ValueError: numbers of YAML that have more digits than Python prints.
            strict = one.stem in KEYS and KEYS[one.stem].strict
            problem = Problem(one.key, one.value, str(error), strict=strict)
            self._problems.append(problem)

    def _read_affinity(self, one: Written) -> None:
        rules = read_affinities(one.value, self._container, AFFINITY_KEYS[one.stem])
        known = self._preferences.get("affinities", ())
        if known or rules:
            self._preferences["affinities"] = (*known, *rules)

    def _read_value(self, one: Written, *, testing: bool) -> None:
        key = KEYS[one.stem]
        if key.testing and not testing:
            raise NotAccepted(one.value, "accepted outside of tests")
        if one.scope is Scope.DEPRECATED:
            found = read_deprecated(one, self._container)
            if found is None:
                return
        else:
            found = key.read(one.value)
        match key.target:
            case Target.PREFERENCE:
                self._preferences[key.field] = found
                self._scopes[key.field] = one.scope
            case Target.HINTS:
                self._hints[key.field] = found
            case Target.PENDING:
                why = "accepted, not yet in force"
                self._problems.append(Problem(one.key, one.value, why, pending=True))


def _is_known(stem: str) -> bool:
    return stem in KEYS or stem in AFFINITY_KEYS


def _unknown(stem: str) -> str:
    import difflib  # only a mistake pays for it

    known = (*KEYS, *AFFINITY_KEYS)
    if close := difflib.get_close_matches(stem, known, n=1):
        return f"unknown key, did you mean {close[0]}?"
    return f"unknown key, expected {' or '.join(known)}"
