"""Targets of the fuzzer: bytes in, nothing out but errors that are no bug."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import attrs
from google.protobuf.message import DecodeError, Message

from nri_proto import (
    PLUGIN_METHODS,
    STATE_CHANGES,
    Call,
    RejectedCall,
    RemoteProtocolError,
    Trunk,
    nri_pb2,
)
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.config import PolicyConfig
from nri_resmgr.policies import parse_config
from nri_resmgr.stub.convert import from_message, to_message
from nri_resmgr.stub.routes import ROUTES, route_of_state_change
from nri_resmgr.stub.runtime_info import Configuration, RuntimeInfo
from nri_resmgr.values import ResmgrError
from tests.fuzz import samples
from tests.fuzz.readers import READERS, check_exclusive
from tests.wire import spelled

CORPUS: Final = Path(__file__).with_name("corpus")
"""A folder for each of the five targets that have a corpus in the repository."""

# Of a target. All are replayed by `make test`.
CORPUS_SIZE: Final = 12 << 10  # bytes
CORPUS_FILES: Final = 25


@attrs.frozen(eq=False)
class Target:
    """Something to fuzz.

    Attributes:
        run: Takes any bytes; an exception is a bug.
        seeds: Good inputs.
        is_text: Whether inputs are texts, so that those of Hypothesis stay valid.
    """

    run: Callable[[bytes], object]
    seeds: Callable[[], Iterable[bytes]]
    is_text: bool = True


def corpus_of(name: str) -> list[bytes]:
    """Return the inputs of a target that the repository has."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


def write_corpus() -> None:
    """Add the smallest seeds of each of the five targets to its corpus."""
    for name in FIVE:
        folder = CORPUS / name
        folder.mkdir(parents=True, exist_ok=True)
        left = CORPUS_SIZE
        seeds = sorted(TARGETS[name].seeds(), key=len)
        # From all sizes.
        for seed in seeds[:: -(-len(seeds) // CORPUS_FILES)]:
            left -= len(seed)
            if left >= 0:
                digest = hashlib.sha256(seed).hexdigest()[:16]
                (folder / digest).write_bytes(seed)


# Texts.


def _read(name: str, data: bytes) -> None:
    with contextlib.suppress(ResmgrError):
        READERS[name].read(data.decode("utf-8", "replace"))


def _texts_of(name: str) -> Iterator[bytes]:
    return (one.encode("utf-8", "replace") for one in READERS[name].samples())


def _of_reader(name: str) -> Target:
    return Target(partial(_read, name), partial(_texts_of, name))


def _checkpoint(data: bytes) -> None:
    """Read a checkpoint as it is, and as the body of a sealed one of some policy."""
    _read("checkpoint", data)
    kind = samples.KINDS[data[0] % len(samples.KINDS)] if data else samples.KINDS[0]
    _read(f"checkpoint of {kind}", data[1:])


def _checkpoints() -> Iterator[bytes]:
    yield from _texts_of("checkpoint")
    for number, kind in enumerate(samples.KINDS):
        for text in _texts_of(f"checkpoint of {kind}"):
            yield bytes((ord("0") + number,)) + text


# Frames.


def _frames(data: bytes) -> None:
    """Receive at both ends of a trunk: in one piece and in many, the same happens."""
    for end in (Trunk.of_plugin, Trunk.of_runtime):
        whole, pieces = end(), end()
        size = 1 + len(data) // _MANY_PIECES
        cut = [data[at : at + size] for at in range(0, len(data), size)]
        events = _received(whole, [data])
        assert events == _received(pieces, cut)
        for event in events or ():
            if isinstance(event, Call):
                assert whole.reply(event.stream_id, event.payload)
            elif isinstance(event, RejectedCall):
                assert whole.refuse(event.stream_id, event.code, event.message)


def _received(end: Trunk, pieces: Iterable[bytes]) -> list[Any] | None:
    """Return the events; None where the peer broke the framing."""
    events: list[Any] = []
    try:
        for piece in pieces:
            events += end.receive_data(piece)
    except RemoteProtocolError:
        return None
    return events


def _streams() -> Iterator[bytes]:
    """Yield the frames of sessions, whole and broken."""
    calls = [
        spelled.trunk(
            spelled.PLUGIN,
            spelled.ttrpc(2 * number + 1, spelled.REQUEST, spelled.request(method)),
        )
        for number, method in enumerate(PLUGIN_METHODS)
    ]
    yield b"".join(calls[:4])
    yield from calls[4:6]
    timed = spelled.request(
        "Configure", b"x", timeout_nano=-1, metadata=[("key", "value")] * 2
    )
    yield spelled.trunk(1, spelled.ttrpc(1, spelled.REQUEST, timed))
    yield spelled.trunk(2, spelled.ttrpc(1, spelled.RESPONSE))
    message = spelled.ttrpc(3, spelled.REQUEST, spelled.request("Shutdown"))
    yield spelled.trunk(1, message[:7]) + spelled.trunk(1, message[7:])
    yield spelled.trunk(1, message * 2) + spelled.trunk(9, b"\xff")
    yield spelled.trunk(1, spelled.ttrpc(2, spelled.DATA) + spelled.ttrpc(5, 4))
    yield b"\0\0\0\1\xff\xff\xff\xff"
    yield spelled.trunk(1, b"\xff\xff\xff\xff\0\0\0\1\1\0" + bytes(40))


# Messages: requests of a runtime, in the order of a session.


class NoTimers:
    """Timers that never fire."""

    def __init__(self, fire: object) -> None: ...

    def set(self, timers: object) -> None:
        """Ignore timers."""

    def keep_only(self, containers: object) -> None:
        """Ignore containers."""


def _messages(data: bytes) -> None:
    policy = ResourcePolicy(
        samples.MACHINE, _config(), plugin_options=PluginOptions(timers=NoTimers)
    )
    policy.synchronize([], [])
    for method, payload in _requests(data):
        try:
            request = PLUGIN_METHODS[method].request.FromString(payload)
        except DecodeError:
            continue
        before, is_refused = policy.state, False
        try:
            _handle(policy, method, request)
        except ResmgrError:
            is_refused = method not in _MAY_HAVE_CHANGED
        assert not is_refused or policy.state is before
        check_exclusive(policy)


# A start or update is decided, and then a class of the container may not fit.
_MAY_HAVE_CHANGED: Final = ("StartContainer", "Configure", "Synchronize")


def _handle(policy: ResourcePolicy, method: str, request: Any) -> None:
    if method == "Configure":
        policy.configure(Configuration(request.config, RuntimeInfo.of(request)))
    elif method == "Synchronize":
        pods = [from_message(one) for one in request.pods]
        policy.synchronize(pods, [from_message(one) for one in request.containers])
    else:
        route = ROUTES.get(method)
        if isinstance(request, nri_pb2.StateChangeEvent):
            route = route_of_state_change(request.event)
        handler = getattr(policy, route.handler, None) if route else None
        if route is not None and handler is not None:
            route.encode(handler(*route.arguments(request)), request)


def _requests(data: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    for _ in range(_MOST_REQUESTS):
        if at + 3 > len(data):
            return
        method = _METHODS[data[at] % len(_METHODS)]
        end = at + 3 + int.from_bytes(data[at + 1 : at + 3])
        yield method, data[at + 3 : end]
        at = end


def _spelled(*requests: tuple[str, Message]) -> bytes:
    text = b""
    for method, message in requests:
        payload = message.SerializeToString()
        text += bytes((_METHODS.index(method),)) + len(payload).to_bytes(2) + payload
    return text


def _sessions() -> Iterator[bytes]:
    pod: Any = to_message(samples.pod("a", {"cpu-class.resource-policy.nri.io": "x"}))
    made: Any = to_message(samples.container("c", 2))
    resources = made.linux.resources
    both = {"pod": pod, "container": made}
    configure = nri_pb2.ConfigureRequest(
        config=samples.documents()[-1], runtime_name="containerd", runtime_version="2.1"
    )
    created = ("CreateContainer", nri_pb2.CreateContainerRequest(**both))
    updated = nri_pb2.UpdateContainerRequest(**both, linux_resources=resources)
    yield _spelled(
        ("Configure", configure),
        ("Synchronize", nri_pb2.SynchronizeRequest(pods=[pod], containers=[made])),
    )
    state_change: Any = nri_pb2.StateChangeEvent  # its stub knows no numbers
    events = [
        ("StateChange", state_change(event=event, **both))
        for event in sorted(STATE_CHANGES)
    ]
    yield _spelled(*events[:2], created, *events[2:])
    yield _spelled(created, ("UpdateContainer", updated))
    twice = nri_pb2.SynchronizeRequest(pods=[pod, pod], containers=[made, made])
    yield _spelled(created, created, ("Synchronize", twice), created)
    yield _spelled(created, ("StopContainer", nri_pb2.StopContainerRequest(**both)))
    for method, kinds in PLUGIN_METHODS.items():
        yield _spelled((method, kinds.request()))


@cache
def _config() -> PolicyConfig:
    document = (
        "{apiVersion: config.nri/v1alpha1, kind: TopologyAwarePolicy, "
        "spec: {reservedResources: {cpu: 1}}}"
    )
    return parse_config(document)


_METHODS: Final = tuple(sorted(PLUGIN_METHODS))
_MOST_REQUESTS: Final = 12
_MANY_PIECES: Final = 100

FIVE: Final[Mapping[str, Target]] = {
    "frames": Target(_frames, _streams, is_text=False),
    "messages": Target(_messages, _sessions, is_text=False),
    "documents": _of_reader("configuration"),
    "annotations": _of_reader("annotations"),
    "checkpoints": Target(_checkpoint, _checkpoints),
}
"""What comes over the wire and from files all the time; each has a corpus."""

# The readers of the five are there under other names.
_COVERED: Final = ("configuration", "annotations", "checkpoint")

TARGETS: Final[Mapping[str, Target]] = {
    **FIVE,
    **{name: _of_reader(name) for name in READERS if not name.startswith(_COVERED)},
}
