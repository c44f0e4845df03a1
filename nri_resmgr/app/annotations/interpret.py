"""What annotations of ours mean, each by the reader of its key."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from nri_resmgr.app.annotations.affinities import read_affinities
from nri_resmgr.app.annotations.deprecated import read_deprecated
from nri_resmgr.app.annotations.errors import NotAccepted
from nri_resmgr.app.annotations.keys import (
    AFFINITY_KEYS,
    KEYS,
    OTHER_POLICIES,
    READ_ELSEWHERE,
    Key,
    Target,
)
from nri_resmgr.app.annotations.read import Problem, Reading
from nri_resmgr.app.annotations.written import (
    Scope,
    Written,
    effective,
    take_apart,
)
from nri_resmgr.classes.choice import ClassRequest
from nri_resmgr.classes.irq.requests import IrqAffinity, IrqRequest
from nri_resmgr.classes.isolation.requests import IsolationRequest, Mistake
from nri_resmgr.policy.preferences import NO_PREFERENCES, Preferences
from nri_resmgr.topology.hint_options import ALL_HINTS, HintOptions
from nri_resmgr.values import InputError
from nri_resmgr.values.shorten import shortened

# A pod creates several containers, and updates ask again. What is longer is rare
# enough to be read each time, and would fill the memory.
_REMEMBERED: Final = 256
_LONG: Final = 4 << 10

# A pod has room for thousands of unknown keys, and each is compared with all known.
_MOST_COMPLAINTS: Final = 20

# Sentences quote what they are about, and are kept and told by several.
_SENTENCE: Final = 300


def interpret(
    annotations: tuple[tuple[str, str], ...], container: str, *, testing: bool
) -> Reading:
    """Read annotations of all name spaces, or remember what they mean.

    Args:
        annotations: Sorted, so that they are the same in any order.
        container: The name in the pod of the container that they are read for.
        testing: Whether tests may hand in topology hints.
    """
    size = sum(len(key) + len(value) for key, value in annotations)
    if size > _LONG:
        return _interpret(annotations, container, testing)
    return _remembered(annotations, container, testing)


def _interpret(
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


_remembered = lru_cache(maxsize=_REMEMBERED)(_interpret)


class _Draft:
    """A reading that grows by one annotation at a time."""

    def __init__(self, container: str) -> None:
        self._container = container
        self._preferences: dict[str, Any] = {}
        self._scopes: dict[str, Scope] = {}
        self._hints: dict[str, Any] = {}
        self._isolation: dict[str, Any] = {}
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
        if self._isolation:
            wishes["isolation"] = IsolationRequest(**self._isolation)
        return Reading(
            Preferences(**wishes) if wishes else NO_PREFERENCES,
            HintOptions(**self._hints) if self._hints else ALL_HINTS,
            tuple(self._problems),
        )

    def complain_about_key(self, one: Written) -> None:
        speaks = one.scope is not Scope.NOWHERE
        if speaks and (_is_known(one.stem) or one.stem.endswith(OTHER_POLICIES)):
            return
        if one.key.startswith(READ_ELSEWHERE):
            return
        match len(self._problems):
            case count if count > _MOST_COMPLAINTS:
                return
            case count if count == _MOST_COMPLAINTS:
                why = "means nothing, as more keys may that are not told"
            case _ if speaks:
                why = _unknown(one.stem)
            case _:
                why = "speaks to nobody, expected /pod or /container.NAME at its end"
        self._complain(one, why)

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
            self._complain(one, str(error), strict=strict)

    def _read_affinity(self, one: Written) -> None:
        rules = read_affinities(one.value, self._container, AFFINITY_KEYS[one.stem])
        known = self._preferences.get("affinities", ())
        if known or rules:
            self._preferences["affinities"] = (*known, *rules)

    def _read_value(self, one: Written, *, testing: bool) -> None:
        key = KEYS[one.stem]
        if key.target is Target.ISOLATION:
            self._read_isolation(one, key)
            return
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
            case Target.CLASS:
                self._preferences[key.field] = _wish(found, one)
            case Target.HINTS:
                self._hints[key.field] = found
            case Target.PENDING:
                why = "accepted, not yet in force"
                self._complain(one, why, pending=True)

    def _read_isolation(self, one: Written, key: Key) -> None:
        # Whether it counts at all is the configuration's to say, which is not here.
        try:
            self._isolation[key.field] = key.read(one.value)
        except InputError as error:
            mistake = Mistake(one.key, shortened(str(error), _SENTENCE))
            known = self._isolation.get("mistakes", ())
            self._isolation["mistakes"] = (*known, mistake)

    def _complain(self, one: Written, why: str, **more: bool) -> None:
        why = shortened(why, _SENTENCE)
        self._problems.append(Problem(one.key, one.value, why, **more))


def _wish(found: object, one: Written) -> ClassRequest | IrqRequest:
    of_container = one.scope is Scope.CONTAINER
    if isinstance(found, IrqAffinity):
        return IrqRequest(found, one.key, of_container)
    return ClassRequest(str(found), one.key, of_container)


def _is_known(stem: str) -> bool:
    return stem in KEYS or stem in AFFINITY_KEYS


def _unknown(stem: str) -> str:
    import difflib  # only a mistake pays for it

    known = (*KEYS, *AFFINITY_KEYS)
    if close := difflib.get_close_matches(stem, known, n=1):
        return f"unknown key, did you mean {close[0]}?"
    return f"unknown key, expected {' or '.join(known)}"
