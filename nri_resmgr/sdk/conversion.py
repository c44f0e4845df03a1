"""Parsed documents to values of the types of their author; errors have their path.

msgspec converts. Its errors name types as Python does and shorten paths; operators read
the words and paths of the other documents of this project instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.table import kind_of, unknown

_T = TypeVar("_T")

# Of msgspec's errors, as in "Expected `int`, got `str` - at `$.pools[0].cpus`".
_PLACE: Final = re.compile(r"(.*) - at (`key` in )?`\$(.*)`", re.DOTALL)
_EXPECTED: Final = re.compile(r"Expected `([^`]*)`(?:, got `[^`]*`)?(.*)", re.DOTALL)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
_CHOICE: Final = re.compile(r"Invalid enum value .*", re.DOTALL)
# A key of a class, a place in a list, any key of a mapping.
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+)\]|\[(\.\.\.)\]")

_WORDS: Final = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
}


_NOT_FOUND: Final = object()


class InvalidField(ValueError):
    """A check of ``__post_init__`` failed.

    Args:
        field: The key in the document, such as ``logFile``.
        why: What is wrong, and what would be accepted.
    """

    def __init__(self, field: str, why: str) -> None:
        super().__init__(field, why)
        self.field = field
        self.why = why


def convert(document: object, kind: type[_T]) -> _T:
    """Convert plain values, as YAML or JSON have them.

    Keys without a value are removed first.

    Raises:
        BadSetting: A part of the document does not fit the type.
    """
    document = _without_nothing(document)
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise _Mistake(document, kind, error).as_error() from None


def _without_nothing(found: object) -> object:
    match found:
        case dict():
            return {k: _without_nothing(v) for k, v in found.items() if v is not None}
        case list():
            return [_without_nothing(one) for one in found]
        case _:
            return found


class _Mistake:
    """An error of msgspec, in the words of documents.

    Args:
        document: The document.
        kind: The type that it does not fit.
        error: Why not.
    """

    def __init__(
        self, document: object, kind: type[Any], error: msgspec.ValidationError
    ) -> None:
        self._document = document
        self._kind = kind
        self._text = str(error)
        self._cause = error.__cause__
        match = _PLACE.fullmatch(self._text)
        self._why, self._of_key, place = (
            match.groups() if match else (self._text, "", "")
        )
        self._path, self._found = "$", document
        self._types = list(_members(inspect.type_info(kind)))
        for step in _STEP.finditer(place):
            self._walk(*step.groups())

    def as_error(self) -> BadSetting:
        """Return the error for the operator."""
        why = self._why
        if isinstance(self._cause, InvalidField):
            return BadSetting(f"{self._path}.{self._cause.field}", self._cause.why)
        if match := _UNKNOWN.fullmatch(why):
            known = [field.encode_name for field in self._fields()]
            return BadSetting(
                f"{self._path}.{match[1]}", unknown("key", match[1], known)
            )
        if match := _MISSING.fullmatch(why):
            return BadSetting(f"{self._path}.{match[1]}", "missing")
        if _CHOICE.fullmatch(why) and self._found is not _NOT_FOUND:
            choices = [str(one) for one in self._choices()]
            return BadSetting(self._path, unknown("value", str(self._found), choices))
        if match := _EXPECTED.fullmatch(why):
            words = [_WORDS.get(one, one) for one in match[1].split(" | ")]
            named = " or ".join(one for one in words if one != "null")
            if self._of_key:
                return BadSetting(self._path, f"expected {named} for each key")
            why = f"expected {named}{match[2]}"
            if self._found is not _NOT_FOUND:
                why += f", not {kind_of(self._found)}"
        return BadSetting(self._path, why)

    def _walk(self, name: str | None, place: str | None, any_key: str | None) -> None:
        if name is not None:
            fields = [one for one in self._fields() if one.encode_name == name]
            self._types = [kind for one in fields for kind in _members(one.type)]
            self._enter(name, f".{name}")
        elif place is not None:
            self._types = [*_items(self._types)]
            self._enter(int(place), f"[{place}]")
        elif any_key and isinstance(self._found, dict):
            values = [_values(one) for one in self._types]
            self._types = [kind for some in values for kind in some]
            self._enter_wrong(self._found)

    def _enter(self, key: Any, step: str) -> None:
        self._path += step
        if isinstance(self._found, (dict, list)):
            self._found = self._found[key]

    def _enter_wrong(self, holder: dict[Any, object]) -> None:
        """Enter the wrong value of a mapping, whose key msgspec does not report.

        It is the one that gives the same error without the others.
        """
        for key, value in dict(holder).items():
            holder.clear()
            holder[key] = value
            try:
                msgspec.convert(self._document, self._kind)
            except msgspec.ValidationError as error:
                if str(error) == self._text:
                    self._enter(key, f".{key}")
                    return
        # Such as of a mapping that has to have several keys.
        self._path += "[...]"
        self._found = _NOT_FOUND

    def _fields(self) -> Iterator[inspect.Field]:
        for one in self._types:
            if isinstance(
                one, (inspect.StructType, inspect.DataclassType, inspect.TypedDictType)
            ):
                yield from one.fields

    def _choices(self) -> Iterator[object]:
        for one in self._types:
            if isinstance(one, inspect.LiteralType):
                yield from one.values
            elif isinstance(one, inspect.EnumType):
                yield from (member.value for member in one.cls)


def _members(kind: inspect.Type) -> Iterator[inspect.Type]:
    if isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from _members(one)
    elif isinstance(kind, inspect.Metadata):
        yield from _members(kind.type)
    else:
        yield kind


def _items(kinds: Iterable[inspect.Type]) -> Iterator[inspect.Type]:
    for one in kinds:
        if isinstance(one, inspect.TupleType):
            for item in one.item_types:
                yield from _members(item)
        elif isinstance(one, inspect.CollectionType):
            yield from _members(one.item_type)


def _values(kind: inspect.Type) -> Iterator[inspect.Type]:
    if isinstance(kind, inspect.DictType):
        yield from _members(kind.value_type)
