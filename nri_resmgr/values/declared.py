"""Frozen classes of attrs that attrs looks at when the first value is made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

# Type checkers know by this name what the decorator does with fields, defaults and
# converters. At run time it is `_frozen`: see the end of this module.
from attrs import frozen

from nri_resmgr.values.initializer import methods_of

__all__ = ["frozen"]

# What attrs writes for a class that is compared and printed by its base.
_WRITTEN: Final = ("__match_args__", "__replace__", "__attrs_attrs__")


def _frozen(kind: Any = None, *, kw_only: bool = False) -> Any:
    """Declare a class as by ``attrs.frozen(eq=False, repr=False)``, cheaply.

    attrs takes 1.1 million instructions to read a class' fields and to compile its
    ``__init__``. The daemon imports some 140 classes, and until it has registered
    makes values of a quarter of them. Here a class gets its slots at once, for a
    tenth of that, its ``__init__`` with its first value, and the rest from attrs
    with the first question for its fields. It is compared and printed by its base:
    `ByContent`.
    """
    if kind is None:
        return lambda kind: _frozen(kind, kw_only=kw_only)
    slotted = _with_slots(kind)

    def complete() -> object:
        made = vars(attrs.frozen(eq=False, repr=False, kw_only=kw_only)(kind))
        for name in made.keys() & _WRITTEN:
            setattr(slotted, name, made[name])
        return made["__init__"]

    def first_init(self: object, *values: object, **named: object) -> None:
        written = methods_of(kind, slotted, kw_only=kw_only)
        for name, content in (written or {"__init__": complete()}).items():
            setattr(slotted, name, content)
        slotted.__init__(self, *values, **named)

    slotted.__init__ = first_init
    slotted.__attrs_attrs__ = _Fields(complete)
    return slotted


class _Fields:
    """Stands for ``__attrs_attrs__`` until somebody asks."""

    def __init__(self, complete: Callable[[], object]) -> None:
        self._complete = complete

    def __get__(self, value: object, kind: Any) -> object:
        self._complete()
        return kind.__attrs_attrs__


def _with_slots(kind: Any) -> Any:
    """Make the class again, with slots, frozen, without the contents of its fields."""
    own = [n for n, what in inspect.get_annotations(kind).items() if _is_field(what)]
    old = {*own, "__dict__", "__weakref__"}
    body = {name: content for name, content in vars(kind).items() if name not in old}
    bases = kind.__mro__[1:]
    taken = {name for base in bases for name in vars(base).get("__slots__", ())}
    is_weak = any("__weakref__" in vars(base) for base in bases)
    slots = [name for name in own if name not in taken]
    body["__slots__"] = tuple(slots if is_weak else [*slots, "__weakref__"])
    made = type(kind)(kind.__name__, kind.__bases__, body | _FROZEN)
    for content in body.values():  # super() means the class that it was written in
        for cell in getattr(content, "__closure__", None) or ():
            if cell.cell_contents is kind:
                cell.cell_contents = made
    return made


def _is_field(annotation: str) -> bool:
    return not annotation.startswith("ClassVar")


def _refuse(*_: object) -> None:
    raise attrs.exceptions.FrozenInstanceError


def _get_state(self: Any) -> dict[str, object]:
    return {one.name: getattr(self, one.name) for one in attrs.fields(type(self))}


def _set_state(self: object, state: Mapping[str, object]) -> None:
    for name, content in state.items():
        object.__setattr__(self, name, content)


_FROZEN: Final = {
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    # For copies: Python's own way would set attributes.
    "__getstate__": _get_state,
    "__setstate__": _set_state,
    "__replace__": attrs.evolve,
}

globals()["frozen"] = _frozen
