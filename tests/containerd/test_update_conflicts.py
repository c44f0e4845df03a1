"""Two plugins that update the same: the test runtime resolves it as containerd does.

Both play the cases of `update_cases` with the same four plugins: one in front of the
two and one behind them see what the runtime makes of their replies, and the resources
of each container when it is removed. The plugins speak the protocol themselves,
because the stub sends no reply that conflicts with itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import attrs
import pytest
from google.protobuf import text_format
from google.protobuf.message import Message

from nri_proto import PLUGIN_METHODS, nri_pb2
from nri_proto.levels import infer_level
from nri_resmgr.stub.convert import from_message, to_message
from nri_resmgr.testing import Runtime, RuntimeRefusal
from nri_resmgr.testing.errors import UpdatesFailed
from tests.containerd.update_cases import CASES, Case, Updates
from tests.real_host.containerd import Containerd
from tests.real_host.cri import CallFailed
from tests.real_host.patience import wait_until
from tests.real_host.pods import ContainerSpec, PodSpec
from tests.real_host.resources import MIB, Resources
from tests.test_runtime.peer import Answer, Peer

pytestmark = pytest.mark.containerd

SMALL: Final = Resources.guaranteed(0.1)
REQUESTED: Final = Resources.guaranteed(0.2, 72 * MIB)

NAMES: Final = ("00-before", "10-first", "20-second", "99-after")

NOT_APPLIED: Final = "not applied"


class Plugins:
    """The four plugins of a case, at the socket of a runtime.

    Attributes:
        ids: Ids of containers by their names here.
    """

    def __init__(self, case: Case, socket: Path, stack: ExitStack) -> None:
        self.ids: dict[str, str] = {}
        self._case = case
        self._peers = [
            stack.enter_context(Peer.connect(socket, name[3:], name[:2], answers))
            for name, answers in zip(
                NAMES,
                (
                    None,
                    {case.method: self._answer(0, case.first)},
                    {case.method: self._answer(1, case.second)},
                    None,
                ),
                strict=True,
            )
        ]

    def _answer(self, number: int, updates: Updates) -> Answer:
        def answer(request: Message) -> Message:
            assert isinstance(request, _REQUESTS)
            response = PLUGIN_METHODS[self._case.method].response()
            assert isinstance(response, _RESPONSES)
            if request.container.name != self._case.subject:
                return response
            ids = {**self.ids, self._case.subject: request.container.id}
            for update in updates:
                message = to_message(update)
                message.container_id = ids.get(message.container_id, "unknown")
                if not update.container_id:
                    message.container_id = ""
                response.update.append(message)
            adjustment = self._case.adjustments[number]
            if adjustment is not None:
                assert isinstance(response, nri_pb2.CreateContainerResponse)
                response.adjust.CopyFrom(to_message(adjustment))
            return response

        return answer

    @property
    def are_synchronized(self) -> bool:
        """True if all have got what runs already."""
        return all("SynchronizeRequest" in peer.calls() for peer in self._peers)

    def first(self, kind: type[Message]) -> Message | None:
        """Return the first request of a kind that the plugin in front has got."""
        found = (one for one in self._peers[0].requests if isinstance(one, kind))
        return next(found, None)

    def have_seen(self, event: str, name: str) -> bool:
        """Return whether the plugin in front has got an event of a container."""
        words = f"{event} {name}: "
        return any(sight.startswith(words) for sight in _sights(self._peers[0]))

    def sights(self) -> Sequence[str]:
        """Return what each plugin has seen of containers, a line for each event.

        The last one of a container that stops is left out: whether containerd can
        still update it is a race with its end.
        """
        is_open = self._case.method == "StopContainer"
        open_ends = tuple(f"{name} {self._case.subject}: " for name in _REMOVALS)
        return [
            f"{name}: {sight}"
            for name, peer in zip(NAMES, self._peers, strict=True)
            for sight in _sights(peer)
            if not (is_open and sight.startswith(open_ends))
        ]


# As a state change, and from NRI 0.12 on as a call.
_REMOVALS: Final = ("REMOVE_CONTAINER", "RemoveContainer")
_REQUESTS: Final = (
    nri_pb2.CreateContainerRequest,
    nri_pb2.UpdateContainerRequest,
    nri_pb2.StopContainerRequest,
)
_RESPONSES: Final = (
    nri_pb2.CreateContainerResponse,
    nri_pb2.UpdateContainerResponse,
    nri_pb2.StopContainerResponse,
)


def _sights(peer: Peer) -> list[str]:
    return [sight for one in tuple(peer.requests) if (sight := _sight(one))]


def _sight(request: Message) -> str:
    match request:
        case nri_pb2.UpdateContainerRequest():
            name, resources = "UpdateContainer", request.linux_resources
        case (
            nri_pb2.CreateContainerRequest()
            | nri_pb2.StopContainerRequest()
            | nri_pb2.PostUpdateContainerRequest()
            | nri_pb2.RemoveContainerRequest()
        ):
            name = type(request).__name__.removesuffix("Request")
            resources = request.container.linux.resources
        case nri_pb2.StateChangeEvent() if request.container.id:
            name = nri_pb2.Event.Name(request.event)
            resources = request.container.linux.resources
        case _:
            return ""
    text = text_format.MessageToString(resources, as_one_line=True)
    return f"{name} {request.container.name}: {text}"


@attrs.frozen
class Outcome:
    """What comes of a case.

    Attributes:
        error: Why the request fails; empty if it does not. A stop never does, and
            whether containerd logs why its updates are lost is a race of its own.
        sights: What each plugin sees of it.
    """

    error: str
    sights: Sequence[str]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_the_test_runtime_predicts_what_comes_of_updates(
    containerd: Containerd, tmp_path: Path, case: Case
) -> None:
    with ExitStack() as stack:
        real, plugins = await asyncio.to_thread(play, containerd, case, stack)

    assert await predict(tmp_path, case, plugins) == real


def play(
    containerd: Containerd, case: Case, stack: ExitStack
) -> tuple[Outcome, Plugins]:
    """Play a case on a real runtime."""
    pod = containerd.run_pod(PodSpec("web"))
    containers = {
        name: pod.create(ContainerSpec(name, SMALL)) for name in case.containers
    }
    for name in containers.keys() - {"late"}:
        containers[name].start()
    plugins = Plugins(case, containerd.layout.nri_socket, stack)
    plugins.ids |= {name: one.id for name, one in containers.items()}
    wait_until(lambda: plugins.are_synchronized, "the plugins to be synchronized")
    if "old" in containers:
        containers["old"].stop()
        wait_until(lambda: plugins.have_seen("StopContainer", "old"), "old to stop")
    error = ""
    try:
        match case.method:
            case "CreateContainer":
                spec = ContainerSpec("new", SMALL)
                containers["new"] = pod.create(spec)
            case "UpdateContainer":
                containers["app"].update(REQUESTED)
            case _:
                containers["app"].stop()
                stopped = ("StopContainer", "app")
                wait_until(lambda: plugins.have_seen(*stopped), "app to stop")
    except CallFailed as failed:
        error = _sentence(str(failed)) or NOT_APPLIED
    for one in containers.values():
        one.remove()
    return Outcome(error, plugins.sights()), plugins


def _sentence(error: str) -> str:
    start = error.find("plugin")
    return error[start:] if start >= 0 else ""


async def predict(folder: Path, case: Case, seen: Plugins) -> Outcome:
    """Play a case on the test runtime, with the containers of a real one."""
    configure, snapshot = (
        seen.first(nri_pb2.ConfigureRequest),
        seen.first(nri_pb2.SynchronizeRequest),
    )
    assert isinstance(configure, nri_pb2.ConfigureRequest)
    assert isinstance(snapshot, nri_pb2.SynchronizeRequest)
    level = infer_level(configure.runtime_name, configure.runtime_version)
    assert level is not None
    async with Runtime(folder, level) as runtime:
        for pod in snapshot.pods:
            await runtime.run_pod(from_message(pod))
        for container in snapshot.containers:
            known = from_message(container)
            await runtime.create_container(container.pod_sandbox_id, known)
            if container.state == nri_pb2.CONTAINER_RUNNING:
                await runtime.start_container(container.id)
        runtime.unupdatable |= {seen.ids[name] for name in case.unupdatable}
        with ExitStack() as stack:
            plugins = Plugins(case, runtime.socket_path, stack)
            plugins.ids |= seen.ids
            for name in NAMES:
                await runtime.synchronized(name)
            if "old" in case.containers:
                await runtime.stop_container(seen.ids["old"])
            error = await _request(runtime, case, seen)
            # Snapshots have containers in any order.
            ids = [seen.ids[name] for name in case.containers]
            new = [one.id for one in runtime.containers if one.id not in ids]
            for one in (*ids, *new):
                await runtime.remove_container(one)
            return Outcome(error, plugins.sights())


async def _request(runtime: Runtime, case: Case, seen: Plugins) -> str:
    try:
        match case.method:
            case "CreateContainer":
                wanted = seen.first(nri_pb2.CreateContainerRequest)
                assert isinstance(wanted, nri_pb2.CreateContainerRequest)
                new = from_message(wanted.container)
                await runtime.create_container(wanted.pod.id, new)
            case "UpdateContainer":
                change = seen.first(nri_pb2.UpdateContainerRequest)
                assert isinstance(change, nri_pb2.UpdateContainerRequest)
                resources = from_message(change.linux_resources)
                await runtime.update_container(seen.ids["app"], resources)
            case _:
                await runtime.stop_container(seen.ids["app"])
    except UpdatesFailed:
        return NOT_APPLIED
    except RuntimeRefusal as refusal:
        return str(refusal)
    return ""
