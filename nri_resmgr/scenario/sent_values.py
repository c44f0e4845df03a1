"""The values of containers that messages send to a runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

import msgspec
from google.protobuf.message import Message


class SentValues(msgspec.Struct, frozen=True):
    """The values that were sent for a container; empty for values that were not.

    Attributes:
        shares: The CPU weight; 0 if it was not sent.
        more: Scheduler and I/O priority, in the text format of protobuf.
    """

    cpus: str = ""
    mems: str = ""
    shares: int = 0
    more: str = ""

    def __bool__(self) -> bool:
        return self != NOTHING

    def __str__(self) -> str:
        parts = (
            f"CPUs {self.cpus}" if self.cpus else "",
            f"nodes {self.mems}" if self.mems else "",
            f"shares {self.shares}" if self.shares else "",
            self.more,
        )
        return ", ".join(part for part in parts if part) or "nothing"


NOTHING: Final = SentValues()


def sent_values_in(
    message: Message | None, created: str = ""
) -> Mapping[str, SentValues]:
    """Return the values in a reply or a call of the plugin, by container.

    *created* is the container that the message adjusts, if it adjusts one.
    """
    if message is None:
        return {}
    found = {
        one.container_id: _of(one.linux)
        for field, updates in message.ListFields()
        if field.name == "update"
        for one in updates
    }
    if created and "adjust" in message.DESCRIPTOR.fields_by_name:
        found[created] = _of(message.adjust.linux)  # type: ignore[attr-defined] # as just seen
    return {key: values for key, values in found.items() if values}


class ContainerMessage(Protocol):
    """A container, as requests have it."""

    id: str
    name: str
    pod_sandbox_id: str


def containers_in(request: Message) -> Iterator[ContainerMessage]:
    """Yield the containers of a request."""
    for field, content in request.ListFields():
        if field.name == "container":
            yield content
        elif field.name == "containers":
            yield from content


def _of(linux: Any) -> SentValues:
    cpu = linux.resources.cpu
    more = " ".join(
        f"{name} {' '.join(str(getattr(linux, name)).split())}"
        for name in ("scheduler", "io_priority")
        if name in linux.DESCRIPTOR.fields_by_name and linux.HasField(name)
    )
    return SentValues(cpu.cpus, cpu.mems, cpu.shares.value, more)
