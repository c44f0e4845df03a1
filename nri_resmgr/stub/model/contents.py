"""What the fields of the model hold: defaults, and lists of strings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import msgspec

# Most maps of most messages are empty: one object serves them all. It is empty, so it
# fits every type of map: hence Any.
EMPTY: Final[Mapping[Any, Any]] = MappingProxyType({})


@cache
def defaults_of(kind: type[msgspec.Struct]) -> Mapping[str, object]:
    """Return what each field of a class holds by default, in the order of the class."""
    # Not `msgspec.structs.fields`, which evaluates all annotations.
    return dict(zip(kind.__struct_fields__, kind.__struct_defaults__, strict=True))


def texts(items: Iterable[str]) -> tuple[str, ...]:
    """Return *items* as a tuple.

    Raises:
        TypeError: A bare string, which would become a tuple of its letters.
    """
    if isinstance(items, str):
        raise TypeError(f"expected several strings, got one: {items!r}")
    return tuple(items)
