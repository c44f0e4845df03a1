"""Removal of secrets from messages: environments, arguments, hooks, annotations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.message import Message

from nri_resmgr.app.annotations.queryable import PRIVATE
from nri_resmgr.checkpoint.decode import read_checkpoint
from nri_resmgr.checkpoint.encode import checkpoint

# Hooks have arguments and environments, too.
_SECRET: Final = ("env", "args", "hooks")


def without_secrets(message: Message) -> Message:
    """Return a message without environments, arguments and hooks of containers.

    Returns:
        A copy, or the same message where it has none of these.
    """
    fields = {field.name for field, _ in message.ListFields()}
    if not fields & {"container", "containers", "pod", "pods", "adjust"}:
        return message
    copy: Any = type(message)()
    copy.CopyFrom(message)
    for part in _parts(copy, fields):
        for name in _SECRET:
            if name in part.DESCRIPTOR.fields_by_name:
                part.ClearField(name)
        for key in PRIVATE & part.annotations.keys():
            del part.annotations[key]
    return copy  # type: ignore[no-any-return] # it is of the class of message


def checkpoint_without_secrets(text: str) -> str:
    """Return a checkpoint without the annotations in `PRIVATE`.

    Raises:
        InputError: It is unreadable.
    """
    saved = read_checkpoint(text)
    _, _, body = text.partition("\n")
    rows = (_pruned(json.loads(line)) for line in body.splitlines())
    lines = [json.dumps(row, separators=(",", ":")) + "\n" for row in rows]
    return checkpoint(lines, saved.kind, saved.version, saved.written)


def _pruned(value: object) -> object:
    match value:
        case dict():
            return {
                key: _pruned(one) for key, one in value.items() if key not in PRIVATE
            }
        case list():
            return [_pruned(one) for one in value]
    return value


def _parts(message: Message, fields: set[str]) -> Iterator[Any]:
    for name in fields & {"container", "pod", "adjust"}:
        yield getattr(message, name)
    for name in fields & {"containers", "pods"}:
        yield from getattr(message, name)
