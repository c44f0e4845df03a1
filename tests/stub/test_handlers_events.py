"""Every event reaches its handler, however the runtime's level sends it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nri_proto import PLUGIN_METHODS, Event, NriLevel, nri_pb2
from nri_resmgr.stub import (
    Container,
    ContainerAdjustment,
    HugepageLimit,
    LinuxCpu,
    LinuxResources,
    Plugin,
    Pod,
    Validation,
)
from nri_resmgr.stub.convert import to_message
from nri_resmgr.testing import Runtime
from tests.stub.live import EVENT_HANDLERS, NAME, live, recording

# A whole life, in the order of events; "notified" are those that old levels send as
# StateChange.
LIFE = [
    ("RUN_POD_SANDBOX", "notified"),
    ("UPDATE_POD_SANDBOX", "asked"),
    ("POST_UPDATE_POD_SANDBOX", "notified"),
    ("CREATE_CONTAINER", "asked"),
    ("VALIDATE_CONTAINER_ADJUSTMENT", "asked"),
    ("POST_CREATE_CONTAINER", "notified"),
    ("START_CONTAINER", "notified"),
    ("POST_START_CONTAINER", "notified"),
    ("UPDATE_CONTAINER", "asked"),
    ("POST_UPDATE_CONTAINER", "notified"),
    ("STOP_CONTAINER", "asked"),
    ("REMOVE_CONTAINER", "notified"),
    ("STOP_POD_SANDBOX", "notified"),
    ("REMOVE_POD_SANDBOX", "notified"),
]
NEW_IN_0_9_1 = {"UPDATE_POD_SANDBOX", "POST_UPDATE_POD_SANDBOX"}
NEW_IN_0_10 = {"VALIDATE_CONTAINER_ADJUSTMENT"}
LEVELS = [
    NriLevel(0, 3),
    NriLevel(0, 6, 1),
    NriLevel(0, 8),
    NriLevel(0, 9, 1),
    NriLevel(0, 10),
    NriLevel(0, 11),
    NriLevel(0, 12),
    NriLevel(0, 12, 1),
    NriLevel(0, 13),
]
# Old levels are inferred from the releases that have them.
RELEASES = {
    "containerd": ["v1.7.0", "v1.7.20", "v2.1.0", "v2.1.0", "v2.2.0", "v2.2.1"],
    "cri-o": ["1.26.2", "1.31.0", "1.32.0", "1.33.0", "1.34.0", "1.35.0"],
}
REQUESTED = LinuxResources(cpu=LinuxCpu(shares=512))


async def live_through(runtime: Runtime) -> None:
    """Bring every event about."""
    pod = await runtime.run_pod(Pod(name="web"))
    await runtime.update_pod(
        pod.id, overhead=LinuxResources(cpu=LinuxCpu(shares=2)), resources=REQUESTED
    )
    created = await runtime.create_container(pod.id, Container(name="app"))
    await runtime.start_container(created.container.id)
    await runtime.update_container(created.container.id, REQUESTED)
    await runtime.stop_container(created.container.id)
    await runtime.remove_container(created.container.id)
    await runtime.stop_pod(pod.id)
    await runtime.remove_pod(pod.id)


def title(name: str, kind: str, level: NriLevel) -> str:
    if kind == "notified" and level < NriLevel(0, 12):
        return f"StateChange({name})"
    return "".join(word.capitalize() for word in name.split("_"))


@pytest.mark.parametrize("name", ["containerd", "cri-o"])
@pytest.mark.parametrize("level", LEVELS, ids=str)
async def test_every_event_of_the_level_is_handled(
    level: NriLevel, name: str, tmp_path: Path
) -> None:
    heard: list[str] = []
    version = dict(zip(LEVELS, RELEASES[name], strict=False)).get(level, "99.0.0")
    unknown = (NEW_IN_0_9_1 if level < NriLevel(0, 9, 1) else set()) | (
        NEW_IN_0_10 if level < NriLevel(0, 10) else set()
    )
    if (name, level) == ("containerd", NriLevel(0, 9, 1)):
        unknown |= NEW_IN_0_9_1  # no containerd has 0.9.1: taken for a 0.8
    life = [(event, kind) for event, kind in LIFE if event not in unknown]
    async with Runtime(tmp_path, level, name, version) as runtime:
        async with live(runtime, recording(heard, *EVENT_HANDLERS)):
            await live_through(runtime)

        assert heard == [event.lower() for event, _ in life]
        assert runtime.calls_to(NAME)[2:] == [title(*row, level) for row in life]
        assert runtime.ignored == []


@pytest.mark.parametrize("event", [event for event, _ in LIFE])
async def test_a_single_subscription_brings_that_event(
    event: str, tmp_path: Path
) -> None:
    heard: list[str] = []
    async with (
        Runtime(tmp_path) as runtime,
        live(runtime, recording(heard, event.lower())),
    ):
        await live_through(runtime)

    assert heard == [event.lower()]


async def test_each_handler_gets_its_arguments(tmp_path: Path) -> None:
    given: dict[str, tuple[object, ...]] = {}
    plugin = Plugin()

    def noting(name: str) -> Any:
        def handler(*arguments: object) -> None:
            given[name] = tuple(map(_summary, arguments))

        handler.__name__ = name
        return handler

    for name in EVENT_HANDLERS:
        plugin.handler(noting(name))
    async with Runtime(tmp_path) as runtime, live(runtime, plugin):
        await live_through(runtime)

    pod, container = "pod web", "container app in pod0"
    overhead = LinuxResources(cpu=LinuxCpu(shares=2))
    about_pods = dict.fromkeys(
        (name for name in EVENT_HANDLERS if "sandbox" in name), (pod,)
    )
    about_containers = dict.fromkeys(
        (name for name in EVENT_HANDLERS if name.endswith("_container")),
        (pod, container),
    )
    assert given == {
        **about_pods,
        **about_containers,
        "update_pod_sandbox": (pod, overhead, REQUESTED),
        "update_container": (pod, container, REQUESTED),
        "validate_container_adjustment": ((pod, container, ("10-py",)),),
    }


def _summary(value: object) -> object:
    match value:
        case Pod():
            return f"pod {value.name}"
        case Container():
            return f"container {value.name} in {value.pod_sandbox_id}"
        case Validation():
            names = tuple(f"{item.index}-{item.name}" for item in value.plugins)
            return _summary(value.pod), _summary(value.container), names
        case _:
            return value


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(0, id="no event"),
        pytest.param(4, id="CreateContainer, which has its own call"),
        pytest.param(10, id="StopContainer, which has its own call"),
        pytest.param(14, id="validation, which has its own call"),
        pytest.param(15, id="the first number of the future"),
        pytest.param(-1, id="a negative one"),
        pytest.param(2**31 - 1, id="the largest"),
    ],
)
async def test_a_state_change_of_no_known_event_is_answered_and_not_handled(
    number: int, tmp_path: Path
) -> None:
    heard: list[str] = []
    async with (
        Runtime(tmp_path) as runtime,
        live(runtime, recording(heard, *EVENT_HANDLERS)),
    ):
        change = nri_pb2.StateChangeEvent(event=number)  # type: ignore[arg-type]  # open enum
        answer = await runtime.call(NAME, "StateChange", change)

    assert (answer, heard) == (nri_pb2.Empty(), [])


@pytest.mark.parametrize("method", sorted(PLUGIN_METHODS.keys() - {"Configure"}))
async def test_a_call_without_handler_is_answered_empty(
    method: str, tmp_path: Path
) -> None:
    async with Runtime(tmp_path) as runtime:
        one = "start_container" if method == "StopContainer" else "stop_container"
        async with live(runtime, recording([], one)):
            answer = await runtime.call(NAME, method, PLUGIN_METHODS[method].request())

    assert answer == PLUGIN_METHODS[method].response()


async def test_shutdown_reaches_its_handler(tmp_path: Path) -> None:
    heard: list[str] = []
    async with (
        Runtime(tmp_path) as runtime,
        live(runtime, recording(heard, "shutdown", "stop_container")),
    ):
        await runtime.call(NAME, "Shutdown", nri_pb2.Empty())

    assert heard == ["shutdown"]


async def test_a_hugepage_limit_and_a_zero_come_as_they_were_sent(
    tmp_path: Path,
) -> None:
    seen: list[LinuxResources] = []
    plugin = Plugin()

    @plugin.handler
    def update_container(_: Pod, __: Container, resources: LinuxResources) -> None:
        seen.append(resources)

    sent = LinuxResources(
        cpu=LinuxCpu(shares=0, quota=-1),
        hugepage_limits=(HugepageLimit("2MB", 0),),
    )
    async with Runtime(tmp_path) as runtime, live(runtime, plugin):
        request = nri_pb2.UpdateContainerRequest(linux_resources=to_message(sent))
        await runtime.call(NAME, Event.UPDATE_CONTAINER.method, request)

    assert seen == [sent]


async def test_adjustments_reach_the_container(tmp_path: Path) -> None:
    plugin = Plugin()

    @plugin.handler
    async def create_container(_: Pod, __: Container) -> ContainerAdjustment:
        return ContainerAdjustment().set_cpus("0-3").set_env("A", "1")

    async with Runtime(tmp_path) as runtime, live(runtime, plugin):
        pod = await runtime.run_pod(Pod())
        created = await runtime.create_container(pod.id, Container())

    assert (created.container.cpu, created.container.env) == (
        LinuxCpu(cpus="0-3"),
        ("A=1",),
    )
