"""What all values of the model share: equality, hash, repr, frozen containers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Self

import attrs

from nri_resmgr.values.declared import frozen

# Most maps of most messages are empty: one object serves them all.
EMPTY: Final[Mapping[Any, Any]] = MappingProxyType({})

_set: Final = object.__setattr__


class OnDemand:
    """Fields that are read when they are first looked at.

    A busy node tells of hundreds of containers at once, and of each with every
    event; most handlers look at a few fields. A value of `reading` has empty slots,
    which Python fills through ``__getattr__``. One that was called into being with
    its class has them full.
    """

    __slots__ = ("_source",)

    @classmethod
    def reading(
        cls, message: object, readers: Mapping[str, Callable[[Any], Any]]
    ) -> Self:
        """Make a value whose fields are read from *message*, each once.

        *readers* has all fields by name.
        """
        value = cls.__new__(cls)
        _set(value, "_source", (message, readers, {}))
        return value

    def _look_up(self, name: str) -> Any:
        try:
            message, readers, _ = _source_of(self)
            read = readers[name]
        except (AttributeError, KeyError):  # without a source, __init__ took all
            kind = type(self).__name__
            raise AttributeError(f"{kind!r} has no attribute {name!r}") from None
        content = read(message)
        _set(self, name, content)
        return content

    # Assigned, not defined: a type checker that saw the method would take every
    # misspelt field for one that is read on demand.
    __getattr__ = _look_up


def read_ahead(value: OnDemand, *names: str) -> None:
    """Read fields that are about to be looked at, and that nobody has looked at yet.

    Python finds an empty slot by way of an exception, which takes as long as it takes
    to read most fields.
    """
    try:
        message, readers, _ = _source_of(value)
    except AttributeError:  # without a source, __init__ took all
        return
    for name in names:
        _set(value, name, readers[name](message))


def unread(value: OnDemand, name: str) -> Any:
    """Return a repeated part as it came, without making values of its items.

    For those who look at little of many. Texts and numbers of an item are its
    attributes, whether it is one of the message or, where *value* was called into
    being with its class, a value.
    """
    try:
        message, _, items = _source_of(value)
    except AttributeError:
        return getattr(value, name)
    if name not in items:  # an object for each, which the message does not keep
        items[name] = getattr(message, name)[:]
    return items[name]


def unread_entries(value: OnDemand, name: str) -> Any:
    """Return a map as it came, for those who look for one entry of many."""
    try:
        message, _, _ = _source_of(value)
    except AttributeError:
        return getattr(value, name)
    return getattr(message, name)


# The slot itself: the classes' own ways refuse, or lead back to `_look_up`.
_source_of: Final[Callable[[object], Any]] = vars(OnDemand)["_source"].__get__


@frozen
class Value(OnDemand):
    """Equality by content, a hash that takes maps, a repr without empty fields.

    Written once instead of generated per class: attrs compiles these methods at
    import, which doubles the time that loading these classes takes.
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(
            getattr(self, field.name) == getattr(other, field.name)
            for field in attrs.fields(type(self))
        )

    def __hash__(self) -> int:
        values = (getattr(self, field.name) for field in attrs.fields(type(self)))
        return hash((type(self), *map(_hashable, values)))

    def __repr__(self) -> str:
        shown = (
            f"{field.name}={_spelt(getattr(self, field.name))}"
            for field in attrs.fields(type(self))
            if getattr(self, field.name) != field.default
        )
        return f"{type(self).__name__}({', '.join(shown)})"


def default_of(value: object, name: str) -> object:
    """Return what the attribute *name* of *value* holds if nobody sets it."""
    # Any: mypy takes the class for one of its instances where it has to be hashable.
    kind: Any = type(value)
    return _default(kind, name)


def as_texts(items: Iterable[str]) -> tuple[str, ...]:
    """Freeze a repeated string; authors may write a list.

    Raises:
        TypeError: A bare string, which would become a tuple of its letters.
    """
    if isinstance(items, str):
        raise TypeError(f"expected several strings, got one: {items!r}")
    return tuple(items)


def as_tuple(items: Iterable[Any]) -> tuple[Any, ...]:
    """Freeze a repeated part; authors may write a list.

    Any, here and below: mypy does not carry a field's type through a generic converter.
    """
    return tuple(items)


def as_text_map(entries: Mapping[str, str]) -> Mapping[str, str]:
    """Freeze a map from text to text; authors may write a dict, which is copied."""
    return as_mapping(entries)


def as_mapping(entries: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Freeze a map field; authors may write a dict, which is copied."""
    if type(entries) is MappingProxyType:
        return entries
    return MappingProxyType(dict(entries)) if entries else EMPTY


@cache
def _default(kind: Any, name: str) -> object:
    return getattr(attrs.fields(kind), name).default


def _hashable(value: object) -> object:
    if isinstance(value, MappingProxyType):
        return frozenset(value.items())
    return value


def _spelt(value: object) -> str:
    if isinstance(value, MappingProxyType):
        # Sorted, since Go's runtimes send maps in random order.
        return repr(dict(sorted(value.items())))
    if isinstance(value, Enum):  # as authors write it: no brackets, no number
        return f"{type(value).__name__}.{value.name}"
    return repr(value)
