"""Frozen values as plain data, and back: what JSON can hold, by declared types."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from typing import Any, Final, TypeAlias

import attrs

from nri_resmgr.values.cpuset import CpuSet, NodeSet
from nri_resmgr.values.error_fields import with_fields
from nri_resmgr.values.errors import BadListFormat, InputError

Step: TypeAlias = Callable[[Any], Any]

# A class or None is of the one, a `NewType` or None of the other.
_UNIONS: Final = (types.UnionType, typing.Union)


@with_fields
class BadValue(InputError):
    """Plain data is not of the type that it should be.

    Attributes:
        at: The path to it, ``.spec.pod_labels``; empty for the whole.
    """

    at: str
    why: str

    def __str__(self) -> str:
        return f"{self.at}: {self.why}" if self.at else self.why


def to_plain(kind: Any, value: Any) -> Any:
    """Turn a value of a declared type into dicts, lists, texts and numbers.

    Fields that have their default are left out, unless it is made by a factory.

    Args:
        kind: A type: an attrs class, a set of CPUs or nodes, an enum, a tuple, a
            frozenset or a mapping of such, or optional ones.
        value: A value of it.
    """
    step = _writer(kind)
    return value if step is None else step(value)


def from_plain(kind: Any, data: Any) -> Any:
    """Make a value out of what `to_plain` gave.

    Raises:
        BadValue: The data is not that of a value of *kind*.
    """
    return _reader(kind)(data)


@cache
def _writer(kind: Any) -> Step | None:
    """Return how values of a type are written; None for as they are."""
    kind = getattr(kind, "__supertype__", kind)
    if (origin := typing.get_origin(kind)) is not None:
        return _compound_writer(origin, typing.get_args(kind))
    if kind in (CpuSet, NodeSet):
        return str
    if issubclass(kind, enum.Enum):
        return lambda one: one.value
    return _fields_writer(kind) if attrs.has(kind) else None


def _compound_writer(origin: Any, parts: tuple[Any, ...]) -> Step | None:
    if origin in _UNIONS:
        some = _writer(_some(parts))
        return some and partial(_unless_none, some)
    step = _writer(parts[-1] if issubclass(origin, Mapping) else parts[0])
    if origin is frozenset:
        return partial(_in_order, step or _same)
    if origin is tuple:
        return list if step is None else partial(_each, step)
    return dict if step is None else partial(_each_of_table, step)


def _same(value: Any) -> Any:
    return value


def _unless_none(step: Step, value: Any) -> Any:
    return None if value is None else step(value)


def _in_order(step: Step, many: Any) -> list[Any]:
    return sorted(step(one) for one in many)


def _each(step: Step, many: Any) -> list[Any]:
    return [step(one) for one in many]


def _each_of_table(step: Step, table: Any) -> dict[str, Any]:
    return {key: step(one) for key, one in table.items()}


def _fields_writer(kind: Any) -> Step:
    types_of = typing.get_type_hints(kind)
    rows = [
        (one.name, one.default, _writer(types_of[one.name]))
        for one in attrs.fields(kind)
        if one.init
    ]

    def write(value: Any) -> dict[str, Any]:
        data = {}
        for name, default, step in rows:
            content = getattr(value, name)
            # Most have the very object that is the default.
            if content is not default and content != default:
                data[name] = content if step is None else step(content)
        return data

    return write


@cache
def _reader(kind: Any) -> Step:
    """Return how values of a type are read."""
    kind = getattr(kind, "__supertype__", kind)
    if (origin := typing.get_origin(kind)) is not None:
        return _compound_reader(origin, typing.get_args(kind))
    if kind in (CpuSet, NodeSet):
        return partial(_read_set, kind)
    if issubclass(kind, enum.Enum):
        return partial(_read_enum, kind)
    return _fields_reader(kind) if attrs.has(kind) else partial(_a, kind)


def _compound_reader(origin: Any, parts: tuple[Any, ...]) -> Step:
    if origin in _UNIONS:
        return partial(_unless_none, _reader(_some(parts)))
    if issubclass(origin, Mapping):
        return partial(_read_table, _reader(parts[1]))
    return partial(_read_list, origin, _reader(parts[0]))


def _some(parts: tuple[Any, ...]) -> Any:
    (some,) = (one for one in parts if one is not types.NoneType)
    return some


def _read_list(kind: Any, step: Step, data: Any) -> Any:
    rows: list[Any] = _a(list, data)
    many: list[Any] = []
    try:
        many.extend(map(step, rows))  # those before a mistake are in it, too
    except BadValue as error:
        raise BadValue(f"[{len(many)}]{error.at}", error.why) from None
    return kind(many)


def _read_table(step: Step, data: Any) -> Any:
    rows, key, table = _a(dict, data), "", {}
    try:
        for key, one in rows.items():
            table[key] = step(one)
    except BadValue as error:
        raise BadValue(f"[{key!r}]{error.at}", error.why) from None
    return table


def _read_set(kind: Any, data: Any) -> Any:
    try:
        return _parsed(kind, _a(str, data))
    except BadListFormat as error:
        raise BadValue("", str(error)) from None


@lru_cache(maxsize=1024)
def _parsed(kind: Any, text: str) -> Any:
    return kind.parse(text)  # most containers share theirs


def _read_enum(kind: Any, data: Any) -> Any:
    try:
        return kind(data)
    except (ValueError, TypeError) as error:
        raise BadValue("", str(error)) from None


def _fields_reader(kind: Any) -> Step:
    types_of = typing.get_type_hints(kind)
    steps = {
        one.name: _reader(types_of[one.name]) for one in attrs.fields(kind) if one.init
    }

    def read(data: Any) -> Any:
        content = _contents(kind, steps, _a(dict, data))
        try:
            return kind(**content)
        except TypeError:  # a field without a default is missing
            missing = _required(kind) - content.keys()
            raise BadValue("", f"{kind.__name__} needs {sorted(missing)}") from None
        except ValueError as error:
            raise BadValue("", str(error)) from None

    return read


def _contents(
    kind: Any, steps: Mapping[str, Step], data: Mapping[str, Any]
) -> dict[str, Any]:
    name, content = "", {}
    try:
        for name, one in data.items():
            content[name] = steps[name](one)
    except KeyError:
        raise BadValue("", f"{kind.__name__} has no {name!r}") from None
    except BadValue as error:
        raise BadValue(f".{name}{error.at}", error.why) from None
    return content


def _required(kind: Any) -> set[str]:
    fields = attrs.fields(kind)
    return {one.name for one in fields if one.init and one.default is attrs.NOTHING}


def _a(kind: type, data: Any) -> Any:
    # By class: True is no number here.
    if type(data) is not kind:
        raise BadValue("", f"expected {kind.__name__}, not {type(data).__name__}")
    return data
