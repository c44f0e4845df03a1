"""What a runtime hears of a handler that fails, and that the plugin lives on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nri_proto import Code, Event, NriLevel, nri_pb2
from nri_resmgr.stub import (
    Container,
    ContainerAdjustment,
    ContainerUpdate,
    LinuxResources,
    Plugin,
    Pod,
    RequestRejected,
    StubOptions,
)
from nri_resmgr.testing import AdjustmentRejected, PluginRefused
from nri_resmgr.values import InputError
from tests.stub.live import NAME, plugged

REQUEST = nri_pb2.StartContainerRequest()


class Sour(InputError):
    """An error of the kind whose text is meant for people."""


def raising(error: Exception, name: str, *, later: bool) -> Plugin:
    """Make a plugin whose handler *name* raises, maybe as a coroutine."""
    plugin = Plugin()

    def handler(*_: object) -> None:
        raise error

    async def coroutine(*_: object) -> None:
        raise error

    chosen: Callable[..., Any] = coroutine if later else handler
    chosen.__name__ = name
    plugin.handler(chosen)
    return plugin


def returning(result: object, name: str) -> Plugin:
    """Make a plugin whose handler *name* returns *result*."""
    plugin = Plugin()

    def handler(*_: object) -> object:
        return result

    handler.__name__ = name
    plugin.handler(handler)
    return plugin


@pytest.mark.parametrize("later", [False, True], ids=["function", "coroutine"])
@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        pytest.param(KeyError("x"), 2, "KeyError: 'x'", id="a bug, with its type"),
        pytest.param(Sour("too sour"), 2, "too sour", id="a sentence of ours"),
        pytest.param(RequestRejected("no room"), 2, "no room", id="a refusal"),
        pytest.param(
            RequestRejected("no", Code.RESOURCE_EXHAUSTED),
            8,
            "no",
            id="a status of choice",
        ),
        pytest.param(
            RequestRejected("ol\udce9 \u2713"),
            2,
            "ol\\udce9 \u2713",
            id="text that is not UTF-8",
        ),
        pytest.param(TimeoutError("late"), 2, "TimeoutError: late", id="a timeout"),
    ],
)
async def test_an_exception_is_an_error_status(
    error: Exception,
    code: int,
    message: str,
    later: bool,  # noqa: FBT001 - a parameter of the table
    tmp_path: Path,
) -> None:
    plugin = raising(error, "start_container", later=later)
    async with plugged(tmp_path, plugin) as (runtime, _):
        with pytest.raises(PluginRefused) as refusal:
            await runtime.call(NAME, "StartContainer", REQUEST)

        assert (refusal.value.code, refusal.value.message) == (code, message)
        assert runtime.plugins == (NAME,)


async def test_an_error_of_a_state_change_is_an_error_status(tmp_path: Path) -> None:
    plugin = raising(RequestRejected("no"), "run_pod_sandbox", later=False)
    async with plugged(tmp_path, plugin, NriLevel(0, 8)) as (runtime, _):
        with pytest.raises(PluginRefused) as refusal:
            await runtime.run_pod(Pod())

        assert (refusal.value.method, refusal.value.code) == ("StateChange", 2)
        assert runtime.plugins == (NAME,)


async def test_the_author_chooses_status_and_sentence(tmp_path: Path) -> None:
    def status_of(error: Exception) -> tuple[int, str]:
        return Code.INVALID_ARGUMENT, f"<{error}>"

    plugin = raising(ValueError("x"), "start_container", later=False)
    options = StubOptions(status_of=status_of)
    async with plugged(tmp_path, plugin, options=options) as (runtime, _):
        with pytest.raises(PluginRefused) as refusal:
            await runtime.call(NAME, "StartContainer", REQUEST)

    assert (refusal.value.code, refusal.value.message) == (3, "<x>")


@pytest.mark.parametrize(
    ("name", "result", "message"),
    [
        pytest.param(
            "create_container",
            ContainerUpdate("c1"),
            "TypeError: the handler should return None, a ContainerAdjustment or a "
            "CreateReply, not ContainerUpdate",
            id="the wrong type",
        ),
        pytest.param(
            "stop_container",
            [ContainerUpdate("c1").set_cpus("0"), ContainerUpdate("c1").set_cpus("1")],
            "linux.resources.cpu.cpus of c1",
            id="a field of a container twice",
        ),
        pytest.param(
            "create_container",
            ContainerAdjustment(
                env=ContainerAdjustment().set_env("A", "1").env * 2  # past the builder
            ),
            "A",
            id="a key twice",
        ),
        pytest.param(
            "update_container",
            ContainerUpdate("").set_cpus("0"),
            "container",
            id="an update of no container",
        ),
        pytest.param(
            "start_container",
            ContainerAdjustment(),
            "TypeError: this handler returns nothing, not ContainerAdjustment",
            id="something where nothing is due",
        ),
    ],
)
async def test_an_inconsistent_reply_is_an_error_status(
    name: str, result: object, message: str, tmp_path: Path
) -> None:
    method = Event[name.upper()].method
    async with plugged(tmp_path, returning(result, name)) as (runtime, _):
        request = {
            "CreateContainer": nri_pb2.CreateContainerRequest(),
            "StopContainer": nri_pb2.StopContainerRequest(),
            "UpdateContainer": nri_pb2.UpdateContainerRequest(),
            "StartContainer": REQUEST,
        }[method]
        with pytest.raises(PluginRefused) as refusal:
            await runtime.call(NAME, method, request)

        assert refusal.value.code == Code.UNKNOWN
        assert message in refusal.value.message
        assert runtime.plugins == (NAME,)


async def test_a_reply_over_4_mib_is_an_error_status(tmp_path: Path) -> None:
    huge = ContainerAdjustment().set_env("A", "x" * (4 << 20))
    plugin = returning(huge, "create_container")
    async with plugged(tmp_path, plugin) as (runtime, _):
        request = nri_pb2.CreateContainerRequest()
        with pytest.raises(PluginRefused) as refusal:
            await runtime.call(NAME, "CreateContainer", request)

        assert refusal.value.code == Code.RESOURCE_EXHAUSTED
        assert "exceeds the limit of 4194304" in refusal.value.message
        assert runtime.plugins == (NAME,)


async def test_a_request_that_does_not_parse_is_an_error_status(tmp_path: Path) -> None:
    plugin = returning(None, "create_container")
    async with plugged(tmp_path, plugin) as (runtime, _):
        broken = nri_pb2.ConfigureRequest(config="\xff")  # in the place of a pod
        with pytest.raises(PluginRefused) as refusal:
            await runtime.call(NAME, "CreateContainer", broken)

        assert refusal.value.code == Code.INTERNAL
        assert refusal.value.message.startswith("CreateContainer: ")
        assert runtime.plugins == (NAME,)


@pytest.mark.parametrize("later", [False, True], ids=["function", "coroutine"])
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(ValueError("no hooks here"), "no hooks here", id="its text"),
        pytest.param(
            RequestRejected("no\udcff"),
            r"no\udcff",
            id="its text, with invalid characters escaped",
        ),
        pytest.param(ValueError(), "ValueError", id="its name where it has no text"),
    ],
)
async def test_an_exception_of_a_validator_is_its_veto(
    error: Exception,
    reason: str,
    later: bool,  # noqa: FBT001 - a parameter of the table
    tmp_path: Path,
) -> None:
    plugin = raising(error, "validate_container_adjustment", later=later)
    async with plugged(tmp_path, plugin) as (runtime, _):
        pod = await runtime.run_pod(Pod())
        with pytest.raises(AdjustmentRejected) as veto:
            await runtime.create_container(pod.id, Container())

        assert (veto.value.validator, veto.value.reason) == (NAME, reason)
        assert (runtime.containers, runtime.plugins) == ((), (NAME,))


async def test_a_change_of_the_pending_update_is_overlaid(tmp_path: Path) -> None:
    plugin = Plugin()

    @plugin.handler
    def update_container(
        _: Pod, container: Container, __: LinuxResources
    ) -> ContainerUpdate:
        return ContainerUpdate(container.id).set_cpus("1")

    async with plugged(tmp_path, plugin) as (runtime, _):
        pod = await runtime.run_pod(Pod())
        await runtime.create_container(pod.id, Container(id="c"))
        updated = await runtime.update_container("c", LinuxResources())

    assert updated.container.cpu.cpus == "1"
