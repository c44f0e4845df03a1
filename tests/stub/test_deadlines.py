"""The time a handler has, and what is answered when it takes more."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nri_proto import PLUGIN_METHODS, NriLevel, Trunk, nri_pb2
from nri_resmgr.stub import (
    Container,
    ContainerAdjustment,
    Overrun,
    Plugin,
    Pod,
    RequestContext,
    StubOptions,
    current_request,
)
from nri_resmgr.testing import Misbehaviour, RecordedMessage, RuntimeOptions, Sender
from tests.stub.live import NAME, plugged, recording
from tests.waiting import until

pytestmark = pytest.mark.slow  # waits for real deadlines

SHORT = RuntimeOptions(request_timeout=0.6)
LAPSE = StubOptions(overrun=Overrun.LAPSE)
START = nri_pb2.StartContainerRequest()


class _Slow:
    """Takes longer than it may; ``create_container`` has a safe answer."""

    def __init__(self) -> None:
        self.requests: list[RequestContext | None] = []
        self.remaining: list[float] = []
        self.cancelled = 0

    async def create_container(self, _: Pod, __: Container) -> ContainerAdjustment:
        request = current_request()
        assert request is not None
        request.safe_answer = ContainerAdjustment().set_cpus("0")
        await self.idle()
        return ContainerAdjustment().set_cpus("1")

    async def start_container(self, _: Pod, __: Container) -> None:
        """Have no safe answer."""
        request = current_request()
        assert request is not None
        self.requests.append(request)
        self.remaining.append(request.remaining(asyncio.get_running_loop().time()))
        await self.idle()

    async def idle(self) -> None:
        """Wait until cancelled."""
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


@pytest.mark.parametrize("request_timeout", [0.5, 1.0])
async def test_a_handler_has_60_percent_of_the_time_from_configure(
    request_timeout: float, tmp_path: Path
) -> None:
    plugin = _Slow()
    runtime_options = RuntimeOptions(request_timeout=request_timeout)
    with capture_logs() as lines:
        async with plugged(tmp_path, plugin, runtime_options=runtime_options) as (
            runtime,
            _,
        ):
            start = time.monotonic()
            answer = await runtime.call(NAME, "StartContainer", START)
            taken = time.monotonic() - start

    assert answer == nri_pb2.StartContainerResponse()
    assert 0.6 * request_timeout <= taken < request_timeout
    assert plugin.remaining == [pytest.approx(0.6 * request_timeout, rel=0.3)]
    assert plugin.cancelled == 1
    late = [one["handler"] for one in lines if one["event"] == "handler.overran"]
    assert late == ["_Slow.start_container"]


async def test_less_time_reported_with_the_request_counts(tmp_path: Path) -> None:
    plugin = _Slow()
    async with plugged(tmp_path, plugin) as (runtime, _):
        runtime.misbehave_now(NAME, Misbehaviour(timeout=0.1))
        start = time.monotonic()
        await runtime.call(NAME, "StartContainer", START)

    assert time.monotonic() - start < 1.2
    assert [request.timeout for request in plugin.requests if request] == [0.1]


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(-1.0, id="a deadline that passed on the way"),
        pytest.param(60.0, id="more than the runtime's own limit"),
    ],
)
async def test_an_invalid_timeout_is_ignored(sent: float, tmp_path: Path) -> None:
    timeouts: list[float] = []
    plugin = Plugin()

    @plugin.handler
    async def start_container(_: Pod, __: Container) -> None:
        request = current_request()
        timeouts.append(request.timeout if request else 0)
        await asyncio.sleep(0.02)

    limit = RuntimeOptions(request_timeout=0.7)
    async with plugged(tmp_path, plugin, runtime_options=limit) as (runtime, _):
        runtime.misbehave_now(NAME, Misbehaviour(timeout=sent))
        await runtime.call(NAME, "StartContainer", START)

    assert timeouts == [0.7]


@pytest.mark.parametrize("level", [NriLevel(0, 3), NriLevel(0, 6, 1)])
@pytest.mark.parametrize("limit", [0.7, 30.0])
async def test_a_runtime_that_reports_no_timeout_sends_it_with_each_request(
    limit: float, level: NriLevel, tmp_path: Path
) -> None:
    """It may be longer or shorter than NRI's default."""
    timeouts: list[float] = []
    plugin = Plugin()

    @plugin.handler
    def start_container(_: Pod, __: Container) -> None:
        request = current_request()
        timeouts.append(request.timeout if request else 0)

    options = RuntimeOptions(request_timeout=limit)
    async with plugged(tmp_path, plugin, level, runtime_options=options) as (
        runtime,
        _,
    ):
        await runtime.call(NAME, "StartContainer", START)

    assert timeouts == [pytest.approx(limit, rel=0.1)]


async def test_the_safe_answer_goes_out_in_time(tmp_path: Path) -> None:
    async with plugged(tmp_path, _Slow(), runtime_options=SHORT) as (runtime, _):
        pod = await runtime.run_pod(Pod())
        created = await runtime.create_container(pod.id, Container())

        assert created.container.cpu.cpus == "0"
        assert runtime.plugins == (NAME,)


async def test_without_a_safe_answer_a_late_plugin_is_disconnected(
    tmp_path: Path,
) -> None:
    plugin = _Slow()
    async with plugged(tmp_path, plugin, runtime_options=SHORT, options=LAPSE) as (
        runtime,
        _,
    ):
        pod = await runtime.run_pod(Pod())
        start = time.monotonic()
        created = await runtime.create_container(pod.id, Container())
        taken = time.monotonic() - start
        await runtime.synchronized(NAME)  # and comes again

        assert taken >= 0.6
        assert created.container.cpu.cpus == ""
        assert runtime.calls_to(NAME).count("Configure") == 2


async def test_a_handler_that_ignores_cancellation_is_answered_once(
    tmp_path: Path,
) -> None:
    plugin = recording([], "stop_container")

    @plugin.handler
    async def create_container(_: Pod, __: Container) -> ContainerAdjustment:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            await asyncio.sleep(0.4)  # past the runtime's limit
        return ContainerAdjustment().set_cpus("1")

    async with plugged(tmp_path, plugin, runtime_options=SHORT) as (runtime, _):
        pod = await runtime.run_pod(Pod())
        created = await runtime.create_container(pod.id, Container())
        await runtime.synchronized(NAME)
        again = await runtime.run_pod(Pod())

        assert created.container.cpu.cpus == ""
        assert (again.id, runtime.plugins) == ("pod1", (NAME,))


async def test_a_late_result_of_a_lost_session_is_dropped(tmp_path: Path) -> None:
    release = asyncio.Event()
    plugin = recording([], "stop_container")

    @plugin.handler
    async def start_container(_: Pod, __: Container) -> None:
        try:
            await release.wait()
        except asyncio.CancelledError:
            release.set()  # go on without a session
            raise

    async with plugged(tmp_path, plugin) as (runtime, _):
        pod = await runtime.run_pod(Pod())
        await runtime.create_container(pod.id, Container())
        starting = asyncio.create_task(runtime.start_container("ctr0"))
        await until(lambda: runtime.calls_to(NAME)[-1] == "StartContainer")
        await runtime.stop()
        await starting
        await runtime.start()
        await runtime.synchronized(NAME)

        answers = [item for item in runtime.records if item.sender is Sender.PLUGIN]
        assert release.is_set()
        assert (
            RecordedMessage(NAME, Sender.PLUGIN, "StartContainer", START) not in answers
        )


async def test_the_request_is_known_to_handlers_and_to_nothing_else(
    tmp_path: Path,
) -> None:
    seen: list[str | None] = []
    plugin = Plugin()

    def note() -> None:
        request = current_request()
        seen.append(request.method if request else None)

    @plugin.handler
    def start_container(_: Pod, __: Container) -> None:
        note()

    @plugin.handler
    async def remove_container(_: Pod, __: Container) -> None:
        await asyncio.sleep(0)
        note()

    async with plugged(tmp_path, plugin) as (runtime, _):
        await runtime.call(NAME, "StartContainer", START)
        await runtime.call(NAME, "RemoveContainer", nri_pb2.RemoveContainerRequest())
        note()

    assert seen == ["StartContainer", "RemoveContainer", None]


async def test_metadata_of_a_request_is_reported(tmp_path: Path) -> None:
    seen: list[tuple[tuple[str, str], ...]] = []
    plugin = Plugin()

    @plugin.handler
    def start_container(_: Pod, __: Container) -> None:
        request = current_request()
        seen.append(request.metadata if request else ())

    async with plugged(tmp_path, plugin) as (runtime, _):
        trunk = Trunk.of_runtime()
        for _number in range(100):  # stream ids go on where the runtime's end
            _, data = trunk.call(
                PLUGIN_METHODS["StartContainer"],
                b"",
                metadata=[("traceparent", "00-a-b-01")],
            )
        runtime.write(NAME, data)
        await until(lambda: bool(seen))

    assert seen == [(("traceparent", "00-a-b-01"),)]


async def test_coroutines_may_finish_in_another_order_than_they_began(
    tmp_path: Path,
) -> None:
    second_is_done = asyncio.Event()
    plugin = Plugin()

    @plugin.handler
    async def start_container(_: Pod, __: Container) -> None:
        await second_is_done.wait()

    @plugin.handler
    async def post_start_container(_: Pod, __: Container) -> None:
        second_is_done.set()

    async with plugged(tmp_path, plugin) as (runtime, _):
        await asyncio.gather(
            runtime.call(NAME, "StartContainer", START),
            runtime.call(
                NAME, "PostStartContainer", nri_pb2.PostStartContainerRequest()
            ),
        )
        said = [item.method for item in runtime.records if item.sender is Sender.PLUGIN]

    assert said[-2:] == ["PostStartContainer", "StartContainer"]


async def test_functions_are_answered_in_the_order_of_the_requests(
    tmp_path: Path,
) -> None:
    heard: list[str] = []
    names = ("start_container", "post_start_container", "remove_container")
    async with plugged(tmp_path, recording(heard, *names)) as (runtime, _):
        methods = ["StartContainer", "PostStartContainer", "RemoveContainer"] * 20
        await asyncio.gather(*(runtime.call(NAME, method, START) for method in methods))
        said = [item.method for item in runtime.records if item.sender is Sender.PLUGIN]

    assert heard == list(names) * 20
    assert said[-60:] == methods
