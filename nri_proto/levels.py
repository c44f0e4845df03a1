"""NRI levels: the NRI release in a runtime, and the features that it has."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from nri_proto.events import ALL_EVENTS, Event

# Nine digits at most: text of a peer must not exceed Python's limit for integers.
_NUMBER: Final = "([0-9]{1,9})"
_VERSION: Final = re.compile(rf"v?{_NUMBER}\.{_NUMBER}(?:\.{_NUMBER})?(?![0-9])")

# Versions that Go programs report if they were built without a version stamp.
_UNSTAMPED: Final = frozenset({"", "(devel)", "0.0.0-unknown"})


class NriLevel(NamedTuple):
    """A release of NRI, ordered.

    >>> NriLevel.parse("v0.11.0-37-g41b9c58")
    NriLevel(major=0, minor=11, patch=0)
    """

    major: int
    minor: int
    patch: int = 0

    @classmethod
    def parse(cls, text: str) -> NriLevel | None:
        """Parse a module version; suffixes of git and of distributions are ignored.

        Returns:
            None if the text names no release.
        """
        match = _VERSION.match(text)
        if text in _UNSTAMPED or match is None:
            return None
        return cls(*(int(number or 0) for number in match.groups()))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def event_mask(self) -> int:
        """All bits that a subscription may have; any other bit ends the session."""
        if self >= VALIDATION:
            return ALL_EVENTS
        if self >= POD_UPDATES:
            return ALL_EVENTS & ~Event.VALIDATE_CONTAINER_ADJUSTMENT.bit
        return OLDEST_EVENT_MASK


# The events that every runtime with NRI knows.
OLDEST_EVENT_MASK: Final = 0x7FF

# First level with the feature.
SPLIT_SYNC: Final = NriLevel(0, 7)  # also: timeouts in Configure
POD_UPDATES: Final = NriLevel(0, 9, 1)
VALIDATION: Final = NriLevel(0, 10)
DEDICATED_CALLS: Final = NriLevel(0, 12)  # also: NRI versions are exchanged
NEWEST_FIELDS: Final = NriLevel(0, 12)  # memory policy was added last
SAFE_UPDATES: Final = NriLevel(0, 12, 1)  # UpdateContainers cannot dead-lock
NEWEST: Final = NriLevel(0, 13)

# First runtime release with each level, oldest first.
_RUNTIMES: Final = {
    "containerd": (
        ((1, 7, 0), NriLevel(0, 3)),
        ((1, 7, 7), NriLevel(0, 4)),
        ((1, 7, 14), NriLevel(0, 6)),
        ((1, 7, 16), NriLevel(0, 6, 1)),
        ((1, 7, 26), NriLevel(0, 8)),
        ((2, 2, 0), NriLevel(0, 10)),
        ((2, 2, 1), NriLevel(0, 11)),
        ((2, 3, 0), NriLevel(0, 12)),
        ((2, 4, 0), NriLevel(0, 12, 1)),
    ),
    "cri-o": (
        ((1, 26, 0), NriLevel(0, 2)),
        ((1, 26, 2), NriLevel(0, 3)),
        ((1, 29, 0), NriLevel(0, 5)),
        ((1, 29, 2), NriLevel(0, 6)),
        ((1, 31, 0), NriLevel(0, 6, 1)),
        ((1, 32, 0), NriLevel(0, 9)),
        ((1, 33, 0), NriLevel(0, 9, 1)),
        ((1, 34, 0), NriLevel(0, 10)),
        ((1, 35, 0), NriLevel(0, 11)),
        ((1, 37, 0), NriLevel(0, 12)),
    ),
}

# containerd 2.0.0 to 2.0.3 report the last part of their module path as their name.
_ALIASES: Final = {"v2": "containerd"}


def infer_level(
    runtime: str, version: str, *, nri_version: str = "", has_timeouts: bool = False
) -> NriLevel | None:
    """Infer the runtime's NRI level from the fields of Configure.

    Args:
        runtime: ``containerd``, ``cri-o`` or ``v2``.
        version: The runtime's own version, with or without ``v`` and suffixes.
        nri_version: As the runtime reported it (NRI >= 0.12), else empty.
        has_timeouts: Whether Configure has a request timeout (NRI >= 0.7).

    Returns:
        The highest level that is certain; None if the level is unknown.
    """
    if (reported := NriLevel.parse(nri_version)) is not None:
        return reported
    floors = []
    if nri_version:
        floors.append(DEDICATED_CALLS)
    if has_timeouts:
        floors.append(SPLIT_SYNC)
    if (listed := _listed_level(runtime, version)) is not None:
        return max(listed, *floors) if floors else listed
    # Timeouts alone do not prove which events the runtime knows.
    return DEDICATED_CALLS if nri_version else None


def _listed_level(runtime: str, version: str) -> NriLevel | None:
    releases = _RUNTIMES.get(_ALIASES.get(runtime, runtime))
    match = _VERSION.match(version)
    if releases is None or match is None:
        return None
    key = tuple(int(number or 0) for number in match.groups())
    known = [level for release, level in releases if release <= key]
    return known[-1] if known else None


def first_release(runtime: str, level: NriLevel) -> str:
    """Return the first release of a runtime with *level*, or the last before it.

    Raises:
        KeyError: *runtime* is neither ``containerd`` nor ``cri-o``.

    >>> first_release("containerd", NriLevel(0, 8))
    'v1.7.26'
    >>> first_release("cri-o", NriLevel(0, 8))
    '1.31.0'
    """
    releases = _RUNTIMES[runtime]
    known = [release for release, carried in releases if carried <= level]
    number = ".".join(map(str, known[-1] if known else releases[0][0]))
    return f"v{number}" if runtime == "containerd" else number
