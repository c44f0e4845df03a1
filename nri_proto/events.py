"""The events of NRI and the masks that subscribe to them."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Final


class Event(enum.IntEnum):
    """Numbers of the schema's enum Event, without its two sentinels."""

    RUN_POD_SANDBOX = 1
    STOP_POD_SANDBOX = 2
    REMOVE_POD_SANDBOX = 3
    CREATE_CONTAINER = 4
    POST_CREATE_CONTAINER = 5
    START_CONTAINER = 6
    POST_START_CONTAINER = 7
    UPDATE_CONTAINER = 8
    POST_UPDATE_CONTAINER = 9
    STOP_CONTAINER = 10
    REMOVE_CONTAINER = 11
    UPDATE_POD_SANDBOX = 12
    POST_UPDATE_POD_SANDBOX = 13
    VALIDATE_CONTAINER_ADJUSTMENT = 14

    @property
    def bit(self) -> int:
        """The event's bit in a subscription mask."""
        return 1 << (self - 1)

    @property
    def method(self) -> str:
        """The event in the spelling of the Plugin service: CreateContainer."""
        return self.name.title().replace("_", "")


ALL_EVENTS: Final = (1 << len(Event)) - 1

_BY_NAME: Final = {event.method.lower(): event.bit for event in Event}
_GROUPS: Final = {
    "all": ALL_EVENTS,
    "pod": sum(bit for name, bit in _BY_NAME.items() if "podsandbox" in name),
    "podsandbox": sum(bit for name, bit in _BY_NAME.items() if "podsandbox" in name),
    "container": sum(bit for name, bit in _BY_NAME.items() if "container" in name),
}

# Events sent by StateChange; they have had their own calls since NRI 0.12.
STATE_CHANGES: Final = frozenset(Event) - {
    Event.CREATE_CONTAINER,
    Event.UPDATE_CONTAINER,
    Event.STOP_CONTAINER,
    Event.UPDATE_POD_SANDBOX,
    Event.VALIDATE_CONTAINER_ADJUSTMENT,
}


def mask_of(events: Iterable[Event]) -> int:
    """Return the subscription mask of some events.

    >>> hex(mask_of([Event.RUN_POD_SANDBOX, Event.CREATE_CONTAINER]))
    '0x9'
    """
    mask = 0
    for event in events:
        mask |= event.bit
    return mask


def events_of(mask: int) -> tuple[Event, ...]:
    """Return the events in a mask; bits of unknown events are ignored."""
    return tuple(event for event in Event if mask & event.bit)


def parse_mask(text: str) -> int:
    """Parse a mask from names of events.

    Args:
        text: Comma-separated CamelCase names in any case, or the groups
            ``all``, ``pod``, ``podsandbox`` and ``container``.

    Raises:
        ValueError: A name is unknown; the message lists the known ones.

    >>> hex(parse_mask("pod,createcontainer"))
    '0x180f'
    """
    mask = 0
    for word in filter(None, (part.strip() for part in text.split(","))):
        name = word.lower()
        bit = _GROUPS.get(name) or _BY_NAME.get(name)
        if bit is None:
            known = ", ".join((*_GROUPS, *(event.method for event in Event)))
            raise ValueError(f"unknown event {word!r}; known are {known}")
        mask |= bit
    return mask
