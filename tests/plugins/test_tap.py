"""A session's messages as its tap sees them, held against the runtime's own tape."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from google.protobuf.message import Message

from nri_resmgr.stub import (
    Container,
    ContainerAdjustment,
    Identity,
    Plugin,
    Pod,
    RequestRejected,
    SocketPath,
    Stub,
    StubOptions,
)
from nri_resmgr.stub.errors import CallFailed
from nri_resmgr.stub.observer import Sender, Tapped
from nri_resmgr.testing import Failure, RecordedMessage, Runtime, RuntimeRefusal

pytestmark = pytest.mark.process

plugin = Plugin()


@plugin.handler
def create_container(_: Pod, __: Container) -> ContainerAdjustment:
    return ContainerAdjustment().set_env("A", "1")


@plugin.handler
def start_container(_: Pod, __: Container) -> None:
    raise RequestRejected("not today")


async def tapped_story(directory: Path) -> tuple[list[Tapped], list[RecordedMessage]]:
    seen: list[Tapped] = []
    async with Runtime(directory) as runtime:
        stub = Stub(
            plugin,
            Identity("choosy", "10"),
            SocketPath(str(runtime.socket_path)),
            StubOptions(on_message=seen.append),
        )
        running = asyncio.create_task(stub.run())
        await runtime.synchronized("10-choosy")
        pod = await runtime.run_pod(Pod(name="web"))
        created = await runtime.create_container(pod.id, Container(name="app"))
        with pytest.raises(RuntimeRefusal, match="not today"):
            await runtime.start_container(created.container.id)
        stub.stop()
        await running
        return seen, list(runtime.records)


def spelt(body: Message | Exception | Failure) -> str:
    if isinstance(body, (CallFailed, Failure)):
        return f"{int(body.code)} {body.message}"
    return f"{type(body).__name__} {body}"


async def test_the_tap_sees_what_the_runtime_sees(tmp_path: Path) -> None:
    seen, records = await tapped_story(tmp_path)

    # Both write down at their own end, so two messages on the way to each other
    # may come in another order.
    assert sorted(
        (item.sender.value, item.method, spelt(item.body)) for item in seen
    ) == sorted((item.sender.value, item.method, spelt(item.body)) for item in records)


async def test_a_reply_comes_with_the_request_it_answers(tmp_path: Path) -> None:
    seen, _ = await tapped_story(tmp_path)
    asked = {item.method: item.body for item in seen if item.request is None}

    answers = {item.method: item for item in seen if item.request is not None}

    assert answers.keys() == asked.keys()
    assert all(answers[method].request is asked[method] for method in asked)
    assert [item.sender for item in seen if item.method == "StartContainer"] == [
        Sender.RUNTIME,
        Sender.PLUGIN,
    ]
