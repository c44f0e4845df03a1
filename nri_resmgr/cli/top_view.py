"""The view of ``top`` that keys change: the visible lines, the order, the filter."""

from __future__ import annotations

import enum
from typing import Any, Final

import msgspec
from msgspec.structs import replace

_LAST: Final = 1 << 30  # a line after all others
_FILTER: Final = "/ filter"


class Order(enum.StrEnum):
    """What containers are sorted by."""

    CPU = "CPU"
    USE = "use"
    NAME = "name"


_NEXT: Final = {Order.CPU: Order.USE, Order.USE: Order.NAME, Order.NAME: Order.CPU}


class View(msgspec.Struct, frozen=True):
    """The view of a frame.

    Attributes:
        first: The first visible line of those that scroll.
        order: The order of containers.
        pattern: Part of the names of containers that are shown, in any case.
        is_typing: Whether keys are characters of the pattern.
        has_cpus: Whether the use of each CPU is shown.
    """

    first: int = 0
    order: Order = Order.CPU
    pattern: str = ""
    is_typing: bool = False
    has_cpus: bool = True

    def shows(self, name: str) -> bool:
        """Return whether a container of this name is shown."""
        return self.pattern.lower() in name.lower()


def pressed(view: View, key: str, page: int) -> View | None:
    """Return the view after a key; None if the key ends the program.

    Args:
        view: The view before.
        key: A name or character, as `keys_of` returns them.
        page: Lines of a page.
    """
    moves = {"up": -1, "down": 1, "page up": -page, "page down": page}
    moves |= {"home": -_LAST, "end": _LAST}
    if key in moves:
        return replace(view, first=max(view.first + moves[key], 0))
    if view.is_typing:
        return _typed(view, key)
    if key in ("q", "Q"):
        return None
    changes: dict[str, dict[str, Any]] = {
        "s": {"order": _NEXT[view.order]},
        "/": {"is_typing": True},
        "escape": {"pattern": ""},
        "c": {"has_cpus": not view.has_cpus},
    }
    return replace(view, **changes.get(key, {}))


def _typed(view: View, key: str) -> View:
    if len(key) == 1:
        return replace(view, pattern=view.pattern + key)
    changes: dict[str, dict[str, Any]] = {
        "enter": {"is_typing": False},
        "escape": {"is_typing": False, "pattern": ""},
        "backspace": {"pattern": view.pattern[:-1]},
    }
    return replace(view, **changes.get(key, {}))


def scrolled(view: View, lines: int, room: int) -> View:
    """Return the view with as many visible lines of *lines* as *room* is there for."""
    return replace(view, first=min(view.first, max(lines - room, 0)))


def help_text(view: View, lines: int, room: int) -> str:
    """Return the keys, and which of the lines are visible if not all are."""
    if view.is_typing:
        return f"filter: {view.pattern}_  Enter keeps it, Esc clears it"
    parts = ["q quit", f"s sort: {view.order}", "c CPUs"]
    if lines > room:
        last = min(view.first + room, lines)
        parts.append(f"arrows: {view.first + 1}-{last} of {lines}")
    # Last, since it can be longer than the screen is wide.
    parts.append(
        f"/ filter: {view.pattern}, Esc clears it" if view.pattern else _FILTER
    )
    return "  ".join(parts)
