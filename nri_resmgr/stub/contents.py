"""Defaults of the model's fields, and checked lists of strings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import msgspec

# Most maps of most messages are empty: they share one object. Any, since an empty map
# fits every type of map.
EMPTY: Final[Mapping[Any, Any]] = MappingProxyType({})


@cache
def defaults_of(kind: type[msgspec.Struct]) -> Mapping[str, object]:
    """Return the default of each field of a class, in the order of the fields."""
    # Not `msgspec.structs.fields`, which evaluates all annotations: that is slow.
    return dict(zip(kind.__struct_fields__, kind.__struct_defaults__, strict=True))


def texts(items: Iterable[str]) -> tuple[str, ...]:
    """Return *items* as a tuple.

    Raises:
        TypeError: *items* is one string, which would become a tuple of letters.
    """
    if isinstance(items, str):
        raise TypeError(f"expected several strings, got one: {items!r}")
    return tuple(items)
