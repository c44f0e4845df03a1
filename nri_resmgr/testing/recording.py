"""Sessions that the logger recorded on a node, and their replay with another plugin.

A recording is what ``logger --format json`` prints: a line for each message, of which
the requests of the runtime are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message

from nri_proto import PLUGIN_METHODS, Event, nri_pb2
from nri_resmgr.host.text_file import read_text_file
from nri_resmgr.stub import (
    Container,
    ContainerAdjustment,
    ContainerUpdate,
    LinuxResources,
    Pod,
    Sender,
)
from nri_resmgr.stub.convert import from_message
from nri_resmgr.stub.runtime_info import RuntimeInfo
from nri_resmgr.stub.session import StubOptions
from nri_resmgr.testing.errors import PluginRefused
from nri_resmgr.testing.plugin import ConnectedPlugin
from nri_resmgr.testing.running import running_plugin
from nri_resmgr.testing.runtime import DEFAULT_LEVEL, Runtime
from nri_resmgr.testing.world import World
from nri_resmgr.values import InputError

_EVENTS: Final = {event.method: event for event in Event}
_NUMBERS: Final = frozenset(int(event) for event in Event)
# The socket is here, beside that of a test's own runtime.
_FOLDER: Final = "replay"


@dataclass(eq=False)
class BadSession(InputError):
    """A file is no recording of the logger, or has not the start of a session.

    Attributes:
        line: Counted from 1.
    """

    path: str
    line: int
    why: str

    def __str__(self) -> str:
        return f"{self.path}: line {self.line}: {self.why}"


class RecordedRequest(msgspec.Struct, frozen=True):
    """A request of the runtime.

    Attributes:
        line: Its line in the file, counted from 1.
        method: The call: ``CreateContainer``, or ``StateChange``.
    """

    line: int
    method: str
    body: Message


class RecordedSession(msgspec.Struct, frozen=True):
    """A session as it was recorded.

    Attributes:
        runtime: The runtime that was recorded.
        start: The messages of Synchronize.
        requests: The requests after them.
    """

    runtime: RuntimeInfo
    start: tuple[RecordedRequest, ...]
    requests: tuple[RecordedRequest, ...]


class ReplayedAnswer(msgspec.Struct, frozen=True):
    """A recorded request, and what the plugin answers to it.

    Attributes:
        line: The line of the request, counted from 1.
        request: Such as ``CreateContainer``, also where it came as StateChange.
        pod: The pod that it is about; None for Synchronize.
        container: The container that it is about; None for requests about pods.
        resources: Those that UpdateContainer asks for; None in other requests.
        adjustment: Of the new container; empty in other requests.
        updates: Of other containers.
        refused: The sentence with which the plugin refuses it; empty if it does not.
    """

    line: int
    request: str
    pod: Pod | None = None
    container: Container | None = None
    resources: LinuxResources | None = None
    adjustment: ContainerAdjustment = ContainerAdjustment()
    updates: tuple[ContainerUpdate, ...] = ()
    refused: str = ""


def parse_session(text: str, path: str) -> RecordedSession:
    """Read a recording.

    Args:
        text: Lines of JSON.
        path: The file, for errors.

    Raises:
        BadSession: A line is not one of the logger's, or the file has no start of a
            session, or several.
    """
    found = list(_requests(text, path))
    configured = [one for one in found if one.method == "Configure"]
    start = tuple(one for one in found if one.method == "Synchronize")
    if not configured or not start:
        why = "no Configure and Synchronize; record from the start of the plugin"
        raise BadSession(path, 1, why)
    if len(configured) > 1:
        why = "a second session; remove its lines, or those before it"
        raise BadSession(path, configured[1].line, why)
    rest = (one for one in found if _is_event(one))
    body = cast("nri_pb2.ConfigureRequest", configured[0].body)
    return RecordedSession(RuntimeInfo.of(body), start, tuple(rest))


def _is_event(request: RecordedRequest) -> bool:
    """Return whether it is one that handlers answer; later NRIs may have more."""
    if isinstance(request.body, nri_pb2.StateChangeEvent):
        return int(request.body.event) in _NUMBERS
    return request.method in _EVENTS


def _requests(text: str, path: str) -> Iterator[RecordedRequest]:
    for number, line in enumerate(text.splitlines(), 1):
        try:
            row = json.loads(line)
            method = row.get("request", "")
            if row["from"] == Sender.RUNTIME and method in PLUGIN_METHODS:
                body = ParseDict(row["message"], PLUGIN_METHODS[method].request())
                yield RecordedRequest(number, method, body)
        except (ParseError, RecursionError) as error:
            raise BadSession(path, number, f"not a message of NRI: {error}") from None
        except (AttributeError, KeyError, TypeError, ValueError):
            why = "not a line of `nri-resmgr plugin logger --format json`"
            raise BadSession(path, number, why) from None


class SessionReplayer:
    """Replays recordings; what the fixture ``recording`` of pytest returns.

    Args:
        directory: For the socket of the test runtime.
        recordings: The folder of files with relative paths.
    """

    def __init__(self, directory: Path, recordings: Path) -> None:
        self._directory = directory / _FOLDER
        self._recordings = recordings

    async def __call__(
        self,
        path: str | Path,
        plugin: object,
        identity: str = "10-plugin",
        *,
        config: str | None = None,
        options: StubOptions = StubOptions(),
    ) -> tuple[ReplayedAnswer, ...]:
        """Make all requests of a recording to a plugin, as they were recorded.

        The runtime has the recorded name, version and NRI level. Requests do not show
        what the plugin answered to earlier ones. Those that it has no handler for are
        left out.

        Args:
            path: The file.
            plugin: As for `running_plugin`, like the other arguments.
            identity: ``NN-name`` to register with.
            config: The plugin's configuration.
            options: Options of its stub.

        Returns:
            The answers, that to Synchronize first.

        Raises:
            UnreadableFile: The file cannot be read.
            BadSession: It is no recording of one session.
            PluginLost: The plugin was too late, or has ended.
        """
        file = self._recordings / path
        session = parse_session(read_text_file(file), str(file))
        of = session.runtime
        level = of.level or DEFAULT_LEVEL
        runtime = Runtime(self._directory, level, of.name, of.version)
        for request in session.start:
            _note(request.body, runtime.world)
        async with (
            runtime,
            running_plugin(runtime, plugin, identity, config=config, options=options),
        ):
            (connected,) = runtime.roster.plugins
            answers = [_of_start(session, runtime)]
            for request in session.requests:
                if connected.subscribes(_EVENTS[_title(request)]):
                    async with runtime.lock:
                        _note(request.body, runtime.world)
                        answers.append(await _answer(request, connected))
        return tuple(answers)


async def _answer(
    request: RecordedRequest, connected: ConnectedPlugin
) -> ReplayedAnswer:
    reply, refused = None, ""
    try:
        reply = await connected.call(request.method, request.body)
    except PluginRefused as refusal:
        refused = refusal.message
    adjustment = ContainerAdjustment()
    updates: Iterable[nri_pb2.ContainerUpdate] = ()
    match reply:
        case nri_pb2.CreateContainerResponse():
            adjustment, updates = from_message(reply.adjust), reply.update
        case nri_pb2.UpdateContainerResponse() | nri_pb2.StopContainerResponse():
            updates = reply.update
        case nri_pb2.ValidateContainerAdjustmentResponse():
            refused = reply.reason if reply.reject else ""
    return ReplayedAnswer(
        request.line,
        _title(request),
        pod=_part(request.body, "pod"),
        container=_part(request.body, "container"),
        resources=_part(request.body, "linux_resources"),
        adjustment=adjustment,
        updates=tuple(map(from_message, updates)),
        refused=refused,
    )


def _part(body: Message, field: str) -> Any:
    """Return the value of a field; None if the message has none."""
    is_there = field in body.DESCRIPTOR.fields_by_name and body.HasField(field)
    return from_message(getattr(body, field)) if is_there else None


def _of_start(session: RecordedSession, runtime: Runtime) -> ReplayedAnswer:
    replies = [
        record.body
        for record in runtime.records
        if isinstance(record.body, nri_pb2.SynchronizeResponse)
    ]
    updates = [from_message(update) for reply in replies for update in reply.update]
    line = session.start[-1].line
    return ReplayedAnswer(line, "Synchronize", updates=tuple(updates))


def _title(request: RecordedRequest) -> str:
    if isinstance(request.body, nri_pb2.StateChangeEvent):
        return Event(request.body.event).method
    return request.method


def _note(body: Message, world: World) -> None:
    """Let the runtime know the pods and containers that a request names."""
    match body:
        case nri_pb2.SynchronizeRequest():
            world.pods.update({one.id: one for one in body.pods})
            world.containers.update({one.id: one for one in body.containers})
        case nri_pb2.CreateContainerRequest():
            world.containers[body.container.id] = body.container
