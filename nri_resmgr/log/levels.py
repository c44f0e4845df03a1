"""Log levels: one per component, changeable while the daemon runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from nri_resmgr.values.errors import InputError

DEBUG: Final = 10
INFO: Final = 20
WARNING: Final = 30
ERROR: Final = 40

LEVELS: Final = {"debug": DEBUG, "info": INFO, "warning": WARNING, "error": ERROR}
_NAMES: Final = {number: name for name, number in LEVELS.items()}

ALL: Final = "*"

# Each rule is tried for each component; more rules come from a faulty client.
MOST_RULES: Final = 64
_LONGEST: Final = 64  # characters of a pattern

_PACKAGE: Final = "nri_resmgr."


@dataclass(eq=False)
class BadLevel(InputError):
    """A rule for the log has an invalid pattern or level."""

    text: str
    why: str

    def __str__(self) -> str:
        return f"log level: {self.text!r}: {self.why}"


class Component:
    """A module that logs.

    Attributes:
        name: Its module's name below ``nri_resmgr``: ``app.observing.decision_log``.
        least: The lowest level of its lines that are logged.
    """

    __slots__ = ("least", "name")

    def __init__(self, name: str, least: int) -> None:
        self.name = name
        self.least = least


class LogLevels:
    """Rules for components; the last matching rule sets the level.

    A pattern is a glob, or the name of a component or package: ``stub`` also matches
    all below ``stub.``. Initially everything is on, so that the structlog
    configuration of a plugin built with the SDK decides.
    """

    def __init__(self) -> None:
        self._rules: dict[str, int] = {ALL: DEBUG}
        self._components: dict[str, Component] = {}
        self._all_debug = False

    def component(self, module: str) -> Component:
        """Return the component of a module; the same one for the same name."""
        name = module.removeprefix(_PACKAGE)
        found = self._components.get(name)
        if found is None:
            found = self._components[name] = Component(name, self._level_of(name))
        return found

    def set(self, pattern: str, level: str) -> None:
        """Add a rule as the last one; ``*`` drops all others.

        Raises:
            BadLevel: *pattern* is not a glob of names, *level* is unknown, or there
                are too many rules.
        """
        self._set(pattern, level)
        self._apply()

    def debug(self, patterns: Iterable[str]) -> None:
        """Set all *patterns* to debug; see `set`."""
        for pattern in patterns:
            self._set(pattern, "debug")
        self._apply()

    def replace(self, rules: Iterable[tuple[str, str]]) -> None:
        """Set patterns and levels in place of all present ones; see `set`."""
        before = self._rules
        self._rules = {ALL: DEBUG}
        try:
            for pattern, level in rules:
                self._set(pattern, level)
        except BadLevel:
            self._rules = before
            raise
        self._apply()

    def toggle_debug(self) -> bool:
        """Turn debug of all components on, or off again; return the new value."""
        self._all_debug = not self._all_debug
        self._apply()
        return self._all_debug

    def as_data(self) -> dict[str, object]:
        """Return rules and resulting levels, ready for JSON.

        Returns:
            ``debugAll``: whether debug of all components is on. ``rules``: pattern to
            level, in their order. ``components``: name to the level in force.
        """
        found = sorted(self._components.values(), key=lambda one: one.name)
        return {
            "debugAll": self._all_debug,
            "rules": {key: _NAMES[level] for key, level in self._rules.items()},
            "components": {one.name: _NAMES[one.least] for one in found},
        }

    def _set(self, pattern: str, level: str) -> None:
        if level not in LEVELS:
            raise BadLevel(level, f"expected one of {', '.join(LEVELS)}")
        if not pattern or pattern.strip() != pattern or len(pattern) > _LONGEST:
            raise BadLevel(pattern, "not a pattern of components, such as stub.*")
        if pattern == ALL:
            self._rules.clear()
        elif pattern not in self._rules and len(self._rules) >= MOST_RULES:
            raise BadLevel(pattern, f"there are {MOST_RULES} rules; set * to drop them")
        self._rules.pop(pattern, None)
        self._rules[pattern] = LEVELS[level]

    def _apply(self) -> None:
        for component in self._components.values():
            component.least = self._level_of(component.name)

    def _level_of(self, name: str) -> int:
        if self._all_debug:
            return DEBUG
        rules = reversed(self._rules.items())
        return next(level for pattern, level in rules if _matches(name, pattern))


def _matches(name: str, pattern: str) -> bool:
    if pattern in (ALL, name) or name.startswith(f"{pattern}."):
        return True
    return fnmatchcase(name, pattern)


levels: Final = LogLevels()
"""The levels of this process."""
