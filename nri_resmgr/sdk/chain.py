"""What plugins change in requests, seen by sessions before and after them.

A runtime asks the plugins one after the other, in the order of their indices, and each
gets the request with the changes of those before it. So a plugin that has two sessions
sees what those between have changed, as far as the message has it. The container of
CreateContainer comes without the CDI devices, RDT settings and memory policies of
earlier plugins, and both requests without their updates of other containers.

Source:
    containerd/nri, pkg/adaptation/result.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from nri_resmgr.stub import (
    Container,
    CreateContainerHandler,
    LinuxResources,
    Pod,
    UpdateContainerHandler,
)
from nri_resmgr.stub.convert import to_message
from nri_resmgr.stub.schema import is_map, is_wrapper

# A content is text, a number, or lists and mappings of these: Any.
Content: TypeAlias = Any


class Change(msgspec.Struct, frozen=True):
    """A field that differs.

    Attributes:
        field: Its place, with the names of the schema, such as
            ``linux.resources.cpu.cpus``.
        before: Its content, of a list the items that are gone; None if it was absent.
        after: Likewise, of a list the new items.
    """

    field: str
    before: Content
    after: Content


class Passage(msgspec.Struct, frozen=True):
    """A request as one session gets it, beside what an earlier session got.

    Attributes:
        method: ``CreateContainer``, or ``UpdateContainer`` of which the resources are
            compared.
        container: ``namespace/pod/container``.
        since: Index of the session that got it before; empty if none did.
        index: Index of this session.
        changes: The differences between both.
    """

    method: str
    container: str
    since: str
    index: str
    changes: tuple[Change, ...]


class Chain:
    """One request as the sessions get it, one after the other.

    A runtime has one request at a time, so that nothing else is kept.

    Args:
        report: Called at each session. It runs while the runtime waits for the reply:
            it must be fast, and must not raise.
    """

    def __init__(self, report: Callable[[Passage], None]) -> None:
        self._report = report
        self._key: tuple[str, str] = ("", "")
        self._index = ""
        self._content: Mapping[str, Content] = {}

    def see(
        self,
        index: str,
        method: str,
        pod: Pod,
        container: Container,
        value: msgspec.Struct,
    ) -> None:
        """Compare *value* with that of the session before this one, and report it."""
        key, content = (method, container.id), as_plain(value)
        is_later = key == self._key and self._index < index
        passage = Passage(
            method=method,
            container=f"{pod.namespace}/{pod.name}/{container.name}",
            since=self._index if is_later else "",
            index=index,
            changes=tuple(changes(self._content, content)) if is_later else (),
        )
        self._key, self._index, self._content = key, index, content
        self._report(passage)


class ChainSession(CreateContainerHandler, UpdateContainerHandler):
    """The handlers of one session; they change nothing."""

    def __init__(self, index: str, chain: Chain) -> None:
        self.index = index
        self.chain = chain

    def create_container(self, pod: Pod, container: Container) -> None:
        """Compare the container that is to be created."""
        self.chain.see(self.index, "CreateContainer", pod, container, container)

    def update_container(
        self, pod: Pod, container: Container, resources: LinuxResources
    ) -> None:
        """Compare the new resources."""
        self.chain.see(self.index, "UpdateContainer", pod, container, resources)


def as_plain(value: msgspec.Struct) -> dict[str, Content]:
    """Return a value of NRI as mappings, lists, texts and numbers.

    Fields have the names of the schema, absent ones are left out, and an
    ``Optional...`` is its value.
    """
    return _plain(to_message(value))


def changes(
    before: Mapping[str, Content], after: Mapping[str, Content], at: str = ""
) -> Iterator[Change]:
    """Find the fields that differ, in the order of their names.

    >>> for one in changes({"a": {"b": 1}, "c": [1, 2]}, {"a": {"b": 2}, "c": [2, 3]}):
    ...     print(one.field, one.before, one.after)
    a.b 1 2
    c [1] [3]
    """
    for name in sorted(before.keys() | after.keys()):
        one, other = before.get(name), after.get(name)
        some = one if other is None else other
        if one == other:
            continue
        if isinstance(some, dict):
            yield from changes(one or {}, other or {}, f"{at}{name}.")
        elif isinstance(some, list):
            gone = [item for item in one or [] if item not in (other or [])]
            new = [item for item in other or [] if item not in (one or [])]
            yield Change(f"{at}{name}", gone, new)
        else:
            yield Change(f"{at}{name}", one, other)


def _plain(message: Message) -> dict[str, Content]:
    return {
        field.name: _content(field, content) for field, content in message.ListFields()
    }


def _content(field: FieldDescriptor, content: Content) -> Content:
    kind = field.message_type
    if kind is not None and is_map(kind):
        value = kind.fields_by_name["value"]
        return {key: _item(value, content[key]) for key in sorted(content)}
    if field.is_repeated:
        return [_item(field, item) for item in content]
    return _item(field, content)


def _item(field: FieldDescriptor, item: Content) -> Content:
    if field.message_type is not None:
        if not is_wrapper(field.message_type):
            return _plain(item)
        value = field.message_type.fields_by_name["value"]
        return _content(value, item.value)
    if field.enum_type is not None:
        # A newer runtime may have numbers that this schema has no name for.
        named = field.enum_type.values_by_number.get(item)
        return item if named is None else named.name
    return item
