"""Frozen values as plain data for JSON and YAML, and back, by msgspec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from nri_resmgr.values.cpuset import CpuSet, NodeSet
from nri_resmgr.values.errors import InputError


@dataclass(eq=False)
class BadValue(InputError):
    """Plain data is not of the type that it should be.

    Attributes:
        why: What is wrong, with the path to it: ``... - at `$.spec.labels```.
    """

    why: str

    def __str__(self) -> str:
        return self.why


def to_plain(value: object) -> Any:
    """Turn a value into dictionaries, tuples, lists, texts and numbers.

    Sets of CPUs and nodes become text in the kernel's list format. Fields with
    their default are left out where the class has ``omit_defaults=True``, and so are
    the empty mappings of a Struct.
    """
    # In order: what is written of equal values must be equal.
    data = msgspec.to_builtins(value, enc_hook=_to_supported, order="deterministic")
    if isinstance(data, dict) and isinstance(value, msgspec.Struct):
        # msgspec leaves out an empty `dict`, and not the empty mappings of other types
        # that labels and annotations are.
        return {name: one for name, one in data.items() if one != {}}
    return data


def from_plain(kind: Any, data: object) -> Any:
    """Make a value out of what `to_plain` returned.

    Args:
        kind: A type: a Struct, or a tuple, mapping, ... of such.
        data: From `to_plain`, or JSON or YAML.

    Raises:
        BadValue: The data is not that of a value of *kind*.
    """
    try:
        return msgspec.convert(data, kind, dec_hook=_from_supported)
    except msgspec.ValidationError as error:
        raise BadValue(str(error)) from None
    # Of a class' `__post_init__`, of data without end, of text that is no UTF-8.
    except (InputError, RecursionError, UnicodeError) as error:
        raise BadValue(str(error)) from error


def _to_supported(value: object) -> object:
    if isinstance(value, CpuSet | NodeSet):
        return str(value)
    if isinstance(value, Mapping):  # a frozen one, or one that is read when needed
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
    # Cached, as most containers share theirs.
    try:
        return kind.parse(text)
    except InputError as error:
        raise ValueError(str(error)) from None  # msgspec adds the path to these
