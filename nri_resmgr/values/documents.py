"""Conversion of values to plain data for JSON and YAML and back, by msgspec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import msgspec

from nri_resmgr.values.cpuset import CpuSet, NodeSet
from nri_resmgr.values.errors import InputError

ValueT = TypeVar("ValueT")

JsonObject: TypeAlias = dict[str, Any]
"""An object of JSON: text, numbers, lists and further objects by key."""


@dataclass(eq=False)
class BadValue(InputError):
    """Plain data does not have the expected type; the message has the path to it."""

    why: str

    def __str__(self) -> str:
        return self.why


def to_plain(value: object) -> Any:
    """Convert a value to dictionaries, tuples, lists, strings and numbers.

    Sets of CPUs and nodes become text in the kernel's list format. Fields with
    their default are left out where the class has ``omit_defaults=True``, and so are
    the empty mappings of a Struct.
    """
    # A changed default of such a class therefore changes the meaning of checkpoints and
    # recordings that were written before.
    # Sorted, so that equal values are written in the same way.
    data = msgspec.to_builtins(value, enc_hook=_to_supported, order="deterministic")
    if isinstance(data, dict) and isinstance(value, msgspec.Struct):
        # msgspec leaves out empty fields of type `dict`, but not those of other
        # mapping types, such as labels and annotations.
        return {name: one for name, one in data.items() if one != {}}
    return data


def from_plain(kind: type[ValueT], data: object) -> ValueT:
    """Convert plain data to a value, such as a Struct; the inverse of `to_plain`.

    Raises:
        BadValue: The data is not that of a value of *kind*.
    """
    try:
        return msgspec.convert(data, kind, dec_hook=_from_supported)
    except msgspec.ValidationError as error:
        raise BadValue(str(error)) from None
    # Raised by a class' `__post_init__`, by deep nesting, by text that is not UTF-8.
    except (InputError, RecursionError, UnicodeError) as error:
        raise BadValue(str(error)) from error


def _to_supported(value: object) -> object:
    if isinstance(value, CpuSet | NodeSet):
        return str(value)
    if isinstance(value, Mapping):  # other mapping types than dict, such as proxies
        return dict(value)
    raise NotImplementedError(f"no plain form of {type(value).__name__}")


def _from_supported(kind: Any, data: object) -> Any:
    if kind not in (CpuSet, NodeSet):
        raise NotImplementedError(f"no plain form of {kind.__name__}")
    if type(data) is not str:
        raise TypeError(f"Expected `str`, got `{type(data).__name__}`")
    return _parsed(kind, data)


@lru_cache(maxsize=1024)
def _parsed(kind: type[CpuSet | NodeSet], text: str) -> CpuSet | NodeSet:
    # Cached, as many containers have the same sets.
    try:
        return kind.parse(text)
    except InputError as error:
        raise ValueError(str(error)) from None  # msgspec adds the path to these
