"""Setting a field, or a key of one, and refusing to do so twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from nri_resmgr.stub.model.contents import defaults_of
from nri_resmgr.stub.reply_errors import DuplicateKey, EmptyText, InvalidKey

ValueT = TypeVar("ValueT", bound=msgspec.Struct)
ItemT = TypeVar("ItemT")


def with_field(value: ValueT, name: str, content: object, label: str) -> ValueT:
    """Return *value* with *content* in a field that holds nothing yet.

    Raises:
        DuplicateKey: It holds something; *label* is how the error calls it.
    """
    if getattr(value, name) != defaults_of(type(value))[name]:
        raise DuplicateKey(label)
    return msgspec.structs.replace(value, **{name: content})


def with_text(value: ValueT, name: str, text: str, label: str) -> ValueT:
    """Do as `with_field` for text where "" means unchanged.

    Raises:
        EmptyText: *text* is empty.
    """
    if not text:
        raise EmptyText(label)
    return with_field(value, name, text, label)


def with_entry(
    value: ValueT, name: str, entry: tuple[str, object], label: str
) -> ValueT:
    """Return *value* with one more key, and its content, in a map field.

    Raises:
        DuplicateKey: The key is there.
    """
    key, content = entry
    entries = getattr(value, name)
    if key in entries:
        raise DuplicateKey(label, key)
    return msgspec.structs.replace(value, **{name: {**entries, key: content}})


def with_item(
    value: ValueT,
    name: str,
    item: ItemT,
    key_of: Callable[[ItemT], str],
    label: str,
) -> ValueT:
    """Return *value* with one more item in a repeated field.

    Raises:
        DuplicateKey: An item with that key is there.
    """
    items: tuple[Any, ...] = getattr(value, name)
    if key_of(item) in map(key_of, items):
        raise DuplicateKey(label, key_of(item))
    return msgspec.structs.replace(value, **{name: (*items, item)})


def plain_key(label: str, key: str) -> str:
    """Return *key*.

    Raises:
        BadKey: It is empty, or the runtime would read it as a removal mark.
    """
    if not key or key.startswith("-"):
        raise InvalidKey(label, key)
    return key


def mark(label: str, key: str) -> str:
    """Return the key that removes *key*.

    Raises:
        BadKey: As in `plain_key`.
    """
    return f"-{plain_key(label, key)}"
