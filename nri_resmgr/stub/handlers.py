"""The handlers of a plugin: methods of a class, or decorated functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from nri_proto import Event, mask_of
from nri_resmgr.stub.errors import BadHandler
from nri_resmgr.stub.handler_checks import check_handler, check_names
from nri_resmgr.values.closest import closest

# Arguments and result depend on the event: `handler_types` has them.
Handler: TypeAlias = Callable[..., Any]
HandlerT = TypeVar("HandlerT", bound=Handler)

# Calls that every plugin gets; they cannot be subscribed to.
_LIFECYCLE: Final = ("configure", "synchronize", "shutdown")

HANDLER_NAMES: Final = (*_LIFECYCLE, *(event.name.lower() for event in Event))


class Handlers(msgspec.Struct, frozen=True):
    """The handlers of a plugin by their names."""

    by_name: Mapping[str, Handler]

    @classmethod
    def of(cls, plugin: object) -> Handlers:
        """Find the handlers of *plugin*: its callables with the names of events.

        Raises:
            BadHandler: A method is a misspelled handler, or a handler has other
                arguments or results than its call. Or it handles no event at all; a
                runtime would take that for a subscription to everything.
        """
        if isinstance(plugin, Plugin):
            found = dict(plugin.handlers)
        else:
            found = {
                name: handler
                for name in HANDLER_NAMES
                if callable(handler := getattr(plugin, name, None))
            }
            check_names(plugin, found)
            for name, handler in found.items():
                check_handler(name, handler)
        if not found.keys() - set(_LIFECYCLE):
            raise BadHandler(
                f"{type(plugin).__name__} handles no event; "
                f"handlers are called {', '.join(HANDLER_NAMES)}"
            )
        return cls(MappingProxyType(found))

    @property
    def mask(self) -> int:
        """The events that have a handler, as a subscription mask."""
        return mask_of(event for event in Event if event.name.lower() in self.by_name)


class Plugin:
    """A plugin made of decorated functions.

    >>> plugin = Plugin()
    >>> @plugin.handler
    ... def stop_container(pod, container):
    ...     print(container.name)
    """

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """The registered functions by handler name."""
        return MappingProxyType(self._handlers)

    def handler(self, function: HandlerT) -> HandlerT:
        """Register *function* for the event or call that it is named after.

        Raises:
            BadHandler: NRI has no event of that name, it has a handler already, or
                *function* has other arguments or results than its call.
        """
        name = function.__name__
        if name not in HANDLER_NAMES:
            close = closest(name, HANDLER_NAMES)
            hint = f", did you mean {close}?" if close else ""
            raise BadHandler(f"NRI has no event for a handler {name}(){hint}")
        if name in self._handlers:
            raise BadHandler(f"{name}() is already registered")
        check_handler(name, function)
        self._handlers[name] = function
        return function
