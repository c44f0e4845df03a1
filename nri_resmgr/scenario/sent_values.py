"""What a runtime was told of containers, taken out of messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from google.protobuf.message import Message


class Told(msgspec.Struct, frozen=True):
    """What one container was told; empty for what was not said.

    Attributes:
        cpus: A list of CPUs.
        mems: A list of memory nodes.
        shares: The weight; 0 where nothing was said.
        more: Of the scheduler and the I/O priority, as protobuf has it.
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


NOTHING: Final = Told()


def told_by(message: Message | None, created: str = "") -> Mapping[str, Told]:
    """Read what a reply, or a call of ours, tells of containers.

    Args:
        message: Of any method.
        created: The container that it is about, where it adjusts one.
    """
    if message is None:
        return {}
    found = {one.container_id: _of(one.linux) for one in _updates(message)}
    if created and "adjust" in message.DESCRIPTOR.fields_by_name:
        found[created] = _of(message.adjust.linux)  # type: ignore[attr-defined] # as just seen
    return {key: told for key, told in found.items() if told}


def containers_in(request: Any) -> Iterator[Any]:
    """Find the containers that a request is about."""
    fields = {field.name for field, _ in request.ListFields()}
    if "container" in fields:
        yield request.container
    if "containers" in fields:
        yield from request.containers


def _updates(message: Any) -> Iterable[Any]:
    fields = message.DESCRIPTOR.fields_by_name
    return message.update if "update" in fields else ()


def _of(linux: Any) -> Told:
    cpu = linux.resources.cpu
    more = " ".join(
        f"{name} {' '.join(str(getattr(linux, name)).split())}"
        for name in ("scheduler", "io_priority")
        if name in linux.DESCRIPTOR.fields_by_name and linux.HasField(name)
    )
    return Told(cpu.cpus, cpu.mems, cpu.shares.value, more)
