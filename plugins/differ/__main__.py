"""Logs what other plugins change in requests, by sessions before and after them."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import msgspec
import structlog
from google.protobuf.json_format import MessageToDict

from nri_resmgr.sdk.settings import Settings
from nri_resmgr.stub import (
    Configuration,
    ConfigureHandler,
    Container,
    CreateContainerHandler,
    Identity,
    LinuxResources,
    PluginFlags,
    Pod,
    SocketPath,
    Stub,
    StubOptions,
    UpdateContainerHandler,
    add_flags,
    serve,
)
from nri_resmgr.stub.convert import to_message
from nri_resmgr.stub.identity import INDEX_VARIABLE
from nri_resmgr.stub.transport import DEFAULT_SOCKET

log = structlog.get_logger(__name__)

NAME: Final = "differ"
FIRST: Final = "00"

Index = Annotated[str, msgspec.Meta(pattern="^[0-9][0-9]$")]


class DifferSettings(Settings, frozen=True):
    """The keys of the configuration document with their defaults."""

    indices: tuple[Index, ...] = (FIRST, "99")
    socket: str = ""


class Chain:
    """One request as the sessions get it, one after the other.

    A runtime has one request at a time, so that nothing else is kept.
    """

    def __init__(self) -> None:
        self._key: tuple[str, str] = ("", "")
        self._index = ""
        self._content: dict[str, Any] = {}

    def see(
        self, index: str, method: str, pod: Pod, container: Container, value: Any
    ) -> None:
        """Log what has changed since the session before this one."""
        key, content = (method, container.id), as_plain(value)
        if key == self._key and self._index < index:
            for field, before, after in changes(self._content, content):
                log.info(
                    "request.changed",
                    method=method,
                    container=f"{pod.namespace}/{pod.name}/{container.name}",
                    between=f"{self._index} and {index}",
                    field=field,
                    before=before,
                    after=after,
                )
        self._key, self._index, self._content = key, index, content


def as_plain(value: Any) -> dict[str, Any]:
    """Return a value of NRI as protobuf's JSON mapping has it."""
    found: dict[str, Any] = MessageToDict(
        to_message(value), preserving_proto_field_name=True
    )
    return found


def changes(
    before: Mapping[str, Any], after: Mapping[str, Any], at: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    """Find the fields that differ, with both contents; of lists, the items that do.

    >>> list(changes({"a": {"b": 1}, "c": [1, 2]}, {"a": {"b": 2}, "c": [2, 3]}))
    [('a.b', 1, 2), ('c', [1], [3])]
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
            yield f"{at}{name}", gone, new
        else:
            yield f"{at}{name}", one, other


class Session(CreateContainerHandler, UpdateContainerHandler):
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


class Differ(Session, ConfigureHandler):
    """The first session, which starts the others.

    Args:
        index: Its own.
        socket: For the other sessions, unless the document has another one.
    """

    def __init__(self, index: str, socket: str) -> None:
        super().__init__(index, Chain())
        self._socket = socket
        self._settings: DifferSettings | None = None
        self._others: dict[asyncio.Task[None], Stub] = {}

    def configure(self, configuration: Configuration) -> None:
        """Have a session for each index; they outlive this one."""
        settings = DifferSettings.read(configuration.text)
        if settings == self._settings:
            return
        self._settings = settings
        for stub in self._others.values():
            stub.stop()
        connector = SocketPath(settings.socket or self._socket)
        options = StubOptions(waits_for_runtime=True)
        for index in sorted({*settings.indices} - {self.index}):
            session = Session(index, self.chain)
            stub = Stub(session, Identity(NAME, index), connector, options)
            task = asyncio.get_running_loop().create_task(stub.run())
            self._others[task] = stub
            task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        index = self._others.pop(task).identity.index
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("session.lost", index=index, why=str(error))


def main() -> None:
    """Run the plugin."""
    parser = argparse.ArgumentParser(NAME, description=__doc__)
    add_flags(parser)
    flags = PluginFlags.of(parser.parse_args())
    index = os.environ.get(INDEX_VARIABLE) or flags.index or FIRST
    plugin = Differ(index, flags.socket or DEFAULT_SOCKET)
    serve(plugin, name=NAME, index=FIRST, flags=flags)


if __name__ == "__main__":
    main()
