"""Mistakes in a plugin's handlers, found at its start instead of in a request.

They are: a misspelled name, of which no runtime ever makes a call; arguments that do
not fit the call; and an annotated result that the call cannot take.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from nri_resmgr.stub.author_line import line_of
from nri_resmgr.stub.errors import BadHandler
from nri_resmgr.stub.handler_types import HANDLER_TYPES
from nri_resmgr.stub.observer import Observer
from nri_resmgr.values.closest import closest

# The results other than None, by handler; all others have None only.
_RESULTS: Final[Mapping[str, frozenset[str]]] = {
    "configure": frozenset({"int"}),
    "synchronize": frozenset({"ContainerUpdate"}),
    "create_container": frozenset({"ContainerAdjustment", "CreateReply"}),
    "update_container": frozenset({"ContainerUpdate", "UpdateReply"}),
    "stop_container": frozenset({"ContainerUpdate"}),
}
_REPLIES: Final = frozenset().union(*_RESULTS.values())
# Results that no call takes, and those that only a call for several updates takes.
_VALUES: Final = frozenset({"bool", "bytes", "dict", "float", "int", "str"})
_SERIES: Final = frozenset({"list", "set", "tuple"})
_WORD: Final = re.compile(r"\w+")

# Methods that plugins have for other purposes, and that resemble handlers.
_NO_HANDLERS: Final = frozenset({*HANDLER_TYPES, *dir(Observer), "update_containers"})

# Letters that a misspelled name may have too many, or too few.
_LETTERS: Final = 2
_SIMILAR: Final = 0.85


def _plain(name: str) -> str:
    """Return *name* without what Go and Python write differently."""
    return name.replace("_", "").lower()


_LETTERS_OF: Final[Mapping[str, Counter[str]]] = {
    name: Counter(_plain(name)) for name in HANDLER_TYPES
}


def check_names(plugin: object, handled: Iterable[str]) -> None:
    """Check that *plugin* has no method that was meant as a handler.

    A name that resembles a handler is a mistake unless the plugin has that handler,
    too, or the name begins with an underscore.

    Raises:
        BadHandler: There is such a method.
    """
    absent = HANDLER_TYPES.keys() - set(handled)
    for name in dir(plugin):
        if name.startswith("_") or name in _NO_HANDLERS:
            continue
        meant = _meant(name, absent)
        # Last, since reading a property runs its code.
        if meant and callable(method := getattr(plugin, name)):
            raise BadHandler(
                f"{_at(method)}{type(plugin).__name__}.{name}() is never called, "
                f"did you mean {meant}()? Begin its name with an underscore if it is "
                "no handler"
            )


def _meant(name: str, absent: Iterable[str]) -> str:
    """Return the handler that *name* resembles; "" if there is none."""
    plain = _plain(name)
    letters = Counter(plain)
    # This excludes nearly all methods for a fraction of the time of `closest`.
    near = {_plain(one): one for one in absent if _is_near(letters, _LETTERS_OF[one])}
    return near.get(closest(plain, near, _SIMILAR), "") if near else ""


def _is_near(one: Counter[str], other: Counter[str]) -> bool:
    if abs(one.total() - other.total()) > _LETTERS:
        return False
    return (one - other).total() <= _LETTERS and (other - one).total() <= _LETTERS


def check_handler(name: str, handler: Callable[..., Any]) -> None:
    """Check that *handler* takes the arguments of the call *name*, and its result.

    A result is checked if it is annotated.

    Raises:
        BadHandler: It does not.
    """
    call = getattr(HANDLER_TYPES[name], name)
    _, *arguments = inspect.signature(call).parameters
    try:
        signature = inspect.signature(handler)
    except (TypeError, ValueError):
        return  # a callable of an extension module may have none
    try:
        signature.bind(*arguments)
    except TypeError:
        raise BadHandler(
            f"{_at(handler)}{name}({', '.join(signature.parameters)}) "
            f"is called with ({', '.join(arguments)})"
        ) from None
    annotation = signature.return_annotation
    possible = results_of(name)
    never = _VALUES | _REPLIES | (frozenset() if possible else _SERIES)
    if wrong := (never - possible) & _words(annotation):
        raise BadHandler(
            f"{_at(handler)}{name}() returns {' or '.join(sorted(wrong))}; "
            f"its result can be {' or '.join(['None', *sorted(possible)])}"
        )


def results_of(name: str) -> frozenset[str]:
    """Return the classes of results, beside None, that the handler *name* may have."""
    return _RESULTS.get(name, frozenset())


def _at(function: Callable[..., Any]) -> str:
    line = line_of(function)
    return f"{line}: " if line else ""


def _words(annotation: object) -> frozenset[str]:
    if annotation is inspect.Signature.empty:
        return frozenset()
    # Not evaluated: a name in it may exist for type checkers only.
    if not isinstance(annotation, str):
        annotation = inspect.formatannotation(annotation)
    return frozenset(_WORD.findall(annotation))
