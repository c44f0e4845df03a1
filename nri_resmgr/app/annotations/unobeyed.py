"""Annotations of a container that its policy does not obey; strict ones refuse it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from nri_resmgr.app.annotations.keys import (
    AFFINITY_KEYS,
    KEYS,
    OF_EVERY_POLICY,
    Key,
    KeyTarget,
)
from nri_resmgr.classes.isolation.requests import IsolationRequest
from nri_resmgr.policy.preferences import NO_PREFERENCES, Preferences
from nri_resmgr.values import PolicyError

# `balloon.balloons` and `pool.podpools` name the policy that they are for, and a pod
# can run on nodes with different policies. CRI-O's keys take effect only where the
# configuration allows it; elsewhere CRI-O does not refuse containers for them, either.
_NEVER_REFUSED: Final = frozenset(("balloon", "dynamic_pool", "isolation", "pod_pool"))

_NO_ISOLATION: Final = IsolationRequest()

_AFFINITY: Final = next(iter(AFFINITY_KEYS)).removeprefix("/")


class Unobeyed(msgspec.Struct, frozen=True):
    """An annotation that the policy in force does not obey.

    Attributes:
        key: The key without name space and scope, as docs/annotations.md lists it.
        refuses: Whether a new container is refused for it.
    """

    key: str
    refuses: bool

    def sentence(self, kind: str) -> str:
        """Say that it has no effect under policies of a kind."""
        return f"annotation {self.key} has no effect: {kind} does not obey it"

    def refusal(self, title: str, kind: str) -> StrictlyUnobeyed:
        """Return the refusal of a container for it."""
        return StrictlyUnobeyed(title, self.key, kind)


@dataclass(eq=False)
class StrictlyUnobeyed(PolicyError):
    """A strict annotation that the policy does not obey."""

    title: str
    key: str
    kind: str

    def __str__(self) -> str:
        return (
            f"{self.title}: annotation {self.key} is strict, and {self.kind} does not "
            "obey it; to help, remove the annotation, or run the pod on a node whose "
            "policy obeys it"
        )


def field_of(key: Key) -> str:
    """Return the name by which policies declare that they obey a key."""
    match key.target:
        case KeyTarget.ISOLATION:
            return "isolation"
        case KeyTarget.HINTS:
            return "hints"
        case _:
            return key.field


def is_obeyed(field: str, obeys: frozenset[str]) -> bool:
    """Return whether a policy that *obeys* these fields obeys this one."""
    return field in obeys or field in OF_EVERY_POLICY


def refuses(key: Key) -> bool:
    """Return whether a container is refused by policies that do not obey a key."""
    return key.strict and field_of(key) not in _NEVER_REFUSED


def unobeyed(preferences: Preferences, obeys: frozenset[str]) -> tuple[Unobeyed, ...]:
    """Return the annotations of a container that a policy does not obey.

    Those that ask for the default, such as ``cpu.preserve: "false"``, are not listed.
    """
    if preferences is NO_PREFERENCES:
        return ()
    return tuple(_unobeyed(preferences, obeys))


def _unobeyed(preferences: Preferences, obeys: frozenset[str]) -> Iterator[Unobeyed]:
    for name, key in KEYS.items():
        field = field_of(key)
        if field and not is_obeyed(field, obeys) and _asks(preferences, key):
            yield Unobeyed(name, refuses(key))
    if preferences.affinities and "affinities" not in obeys:
        yield Unobeyed(_AFFINITY, refuses=False)


def _asks(preferences: Preferences, key: Key) -> bool:
    match key.target:
        case KeyTarget.HINTS:
            # Which of them it has is not stored: one stands for all.
            return preferences.selects_hints and key is KEYS["topologyhints"]
        case KeyTarget.ISOLATION:
            found, usual = preferences.isolation or _NO_ISOLATION, _NO_ISOLATION
            return bool(getattr(found, key.field) != getattr(usual, key.field))
        case _ if key.field == "isolated" and preferences.require_isolated:
            return False  # it only follows from the requirement
        case _:
            usual = getattr(NO_PREFERENCES, key.field)
            return bool(getattr(preferences, key.field) != usual)
