"""Applies the reader of each key to a pod's annotations and collects problems."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from nri_resmgr.app.annotations.affinities import read_affinities
from nri_resmgr.app.annotations.documents import (
    read_document,
    read_mapping,
    read_text,
)
from nri_resmgr.app.annotations.errors import NotAccepted
from nri_resmgr.app.annotations.keys import (
    AFFINITY_KEYS,
    KEYS,
    OF_EVERY_POLICY,
    OTHER_POLICIES,
    READ_ELSEWHERE,
    Key,
    KeyTarget,
)
from nri_resmgr.app.annotations.reading import AnnotationProblem, Reading
from nri_resmgr.app.annotations.scopes import (
    Scope,
    ScopedAnnotation,
    effective,
    split_keys,
)
from nri_resmgr.app.annotations.values import cold_start_of, unusual_flag
from nri_resmgr.classes.choice import ClassRequest
from nri_resmgr.classes.irq.requests import IrqAffinity, IrqRequest
from nri_resmgr.classes.isolation.requests import IsolationRequest, Mistake
from nri_resmgr.policy.preferences import NO_PREFERENCES, Preferences
from nri_resmgr.topology.hint_options import ALL_HINTS, HintOptions
from nri_resmgr.values import InputError
from nri_resmgr.values.closest import closest
from nri_resmgr.values.shorten import shortened

# A pod has several containers, and updates read its annotations again. Longer ones are
# rare and are read each time: cached they would take too much memory.
_CACHED: Final = 256
_LONG: Final = 4 << 10

# A pod has room for thousands of unknown keys, and each is compared with all known.
_MOST_KEY_PROBLEMS: Final = 20

_NO_CONTAINER: Final = "for no container, expected /pod or /container.NAME at its end"

# Characters. Problems quote values, and are stored, logged and reported.
_MOST_WHY: Final = 300


def interpret(
    annotations: tuple[tuple[str, str], ...], container: str, *, testing: bool
) -> Reading:
    """Read annotations of all name spaces; short ones are cached.

    Args:
        annotations: Sorted, so that any order gives the same cache entry.
        container: Name in the pod of the container that they are read for.
        testing: Whether tests may provide topology hints.
    """
    size = sum(len(key) + len(value) for key, value in annotations)
    if size > _LONG:
        return _interpret(annotations, container, testing)
    return _cached(annotations, container, testing)


def _interpret(
    annotations: tuple[tuple[str, str], ...],
    container: str,
    testing: bool,  # noqa: FBT001 - the cache's keys are positional arguments
) -> Reading:
    everything = split_keys(annotations, container)
    builder = _ReadingBuilder(container)
    for one in everything:
        builder.check_key(one)
    # Keys are checked in all scopes, values only where they are effective.
    for one in effective(everything).values():
        builder.add(one, testing=testing)
    return builder.reading()


_cached = lru_cache(maxsize=_CACHED)(_interpret)


class _ReadingBuilder:
    """Builds a `Reading`, one annotation at a time."""

    def __init__(self, container: str) -> None:
        self._container = container
        self._preferences: dict[str, Any] = {}
        self._scopes: dict[str, Scope] = {}
        self._hints: dict[str, Any] = {}
        self._isolation: dict[str, Any] = {}
        self._problems: list[AnnotationProblem] = []

    def reading(self) -> Reading:
        fields = self._preferences
        if fields.get("require_isolated"):
            # A preference of narrower scope overrides the requirement.
            scopes = self._scopes
            is_overridden = (
                "isolated" in fields and scopes["isolated"] < scopes["require_isolated"]
            )
            if is_overridden:
                fields["require_isolated"] = False
            else:
                fields["isolated"] = True
        if self._isolation:
            fields["isolation"] = IsolationRequest(**self._isolation)
        return Reading(
            Preferences(**fields) if fields else NO_PREFERENCES,
            HintOptions(**self._hints) if self._hints else ALL_HINTS,
            tuple(self._problems),
        )

    def check_key(self, one: ScopedAnnotation) -> None:
        is_valid = one.scope is not Scope.INVALID
        if is_valid and (_is_known(one.stem) or one.stem.endswith(OTHER_POLICIES)):
            return
        if one.key.startswith(READ_ELSEWHERE):
            return
        match len(self._problems):
            case count if count > _MOST_KEY_PROBLEMS:
                return
            case count if count == _MOST_KEY_PROBLEMS:
                why = "unknown key; problems of further keys are not reported"
            case _ if is_valid:
                why = _unknown(one.stem)
            case _:
                why = _NO_CONTAINER
        self._add_problem(one, why)

    def add(self, one: ScopedAnnotation, *, testing: bool) -> None:
        if not _is_known(one.stem):
            return
        try:
            if one.stem in AFFINITY_KEYS:
                self._read_affinity(one)
            else:
                self._read_value(one, testing=testing)
        except (InputError, ValueError) as error:
            # ValueError: YAML numbers with more digits than Python converts to text.
            key = KEYS.get(one.stem)
            if key and key.strict:
                of_policy = key.field not in OF_EVERY_POLICY
                self._add_problem(one, str(error), strict=True, of_policy=of_policy)
            else:
                self._add_problem(one, str(error))

    def _read_affinity(self, one: ScopedAnnotation) -> None:
        rules = read_affinities(one.value, self._container, AFFINITY_KEYS[one.stem])
        earlier = self._preferences.get("affinities", ())
        if earlier or rules:
            self._preferences["affinities"] = (*earlier, *rules)

    def _read_value(self, one: ScopedAnnotation, *, testing: bool) -> None:
        key = KEYS[one.stem]
        if key.target is KeyTarget.ISOLATION:
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
            if why := unusual_flag(key.read, one.value):
                self._add_problem(one, why, read=True)
        match key.target:
            case KeyTarget.PREFERENCE:
                self._preferences[key.field] = found
                self._scopes[key.field] = one.scope
            case KeyTarget.CLASS:
                self._preferences[key.field] = _class_request(found, one)
            case KeyTarget.HINTS:
                self._hints[key.field] = found
                self._preferences["selects_hints"] = True

    def _read_isolation(self, one: ScopedAnnotation, key: Key) -> None:
        # A mistake is no problem here: the configuration, which is not known here,
        # decides whether isolation annotations are followed at all.
        try:
            self._isolation[key.field] = key.read(one.value)
        except InputError as error:
            mistake = Mistake(one.key, shortened(str(error), _MOST_WHY))
            earlier = self._isolation.get("mistakes", ())
            self._isolation["mistakes"] = (*earlier, mistake)

    def _add_problem(self, one: ScopedAnnotation, why: str, **more: bool) -> None:
        why = shortened(why, _MOST_WHY)
        self._problems.append(AnnotationProblem(one.key, one.value, why, **more))


def _class_request(found: object, one: ScopedAnnotation) -> ClassRequest | IrqRequest:
    of_container = one.scope is Scope.CONTAINER
    if isinstance(found, IrqAffinity):
        return IrqRequest(found, one.key, of_container)
    return ClassRequest(str(found), one.key, of_container)


def _is_known(stem: str) -> bool:
    return stem in KEYS or stem in AFFINITY_KEYS


def _unknown(stem: str) -> str:
    known = (*KEYS, *AFFINITY_KEYS)
    if close := closest(stem, known):
        return f"unknown key, did you mean {close}?"
    return f"unknown key, expected {' or '.join(known)}"


_COLD_START: Final = "cold-start"


def read_deprecated(one: ScopedAnnotation, container: str) -> object:
    """Read a value for all containers, or a YAML mapping of containers to values.

    Returns:
        What the key's reader returns; None where the mapping has no entry for the
        container.

    Raises:
        InputError: The key does not accept the value.

    Source:
        CRI Resource Manager, docs/policy/topology-aware.md.
    """
    if ":" not in one.value:
        return KEYS[one.stem].read(one.value)
    found = read_mapping(read_document(one.value), "$")
    path = f"$.{container}"
    if one.stem == _COLD_START:
        return _cold_start(found, container, path)
    if found.get(container) is None:
        return None
    return KEYS[one.stem].read(read_text(found[container], path))


def _cold_start(found: dict[str, object], container: str, path: str) -> int | None:
    # A container may be called "duration": then its value is a mapping.
    if isinstance(found.get("duration"), str):
        return cold_start_of(found, "$")
    if found.get(container) is None:
        return None
    return cold_start_of(found[container], path)
