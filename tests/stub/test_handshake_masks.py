"""The events a plugin subscribes to, at runtimes that do not know them all."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nri_proto import Event, NriLevel, mask_of, nri_pb2
from nri_resmgr.stub import BadHandler, Configuration, Plugin, RuntimeTooOld
from nri_resmgr.testing import Runtime, Sender
from tests.stub.live import (
    EVENT_HANDLERS,
    NAME,
    launched_stub_at,
    live,
    recording,
    running,
    stub_at,
)

ALL = 0x3FFF
CREATE_AND_STOP = mask_of((Event.CREATE_CONTAINER, Event.STOP_CONTAINER))


def masks(runtime: Runtime) -> list[int]:
    """Return what was subscribed to, session by session."""
    return [
        record.body.events
        for record in runtime.records
        if record.sender is Sender.PLUGIN
        and isinstance(record.body, nri_pb2.ConfigureResponse)
    ]


def subscribing(wanted: Event | int | None, *names: str) -> Plugin:
    """Make a plugin whose configure handler asks for *wanted*."""
    plugin = recording([], *names)

    @plugin.handler
    def configure(_: Configuration) -> object:
        return wanted

    return plugin


@pytest.mark.parametrize(
    ("level", "name", "version", "mask"),
    [
        pytest.param(NriLevel(0, 3), "containerd", "v1.7.0", 0x7FF, id="0.3"),
        pytest.param(NriLevel(0, 6, 1), "cri-o", "1.31.0", 0x7FF, id="0.6.1"),
        pytest.param(NriLevel(0, 8), "v2", "v2.0.2", 0x7FF, id="0.8 that says v2"),
        pytest.param(NriLevel(0, 9, 1), "cri-o", "1.33.0", 0x1FFF, id="0.9.1"),
        pytest.param(NriLevel(0, 10), "containerd", "v2.2.0", ALL, id="0.10"),
        pytest.param(NriLevel(0, 11), "cri-o", "1.36.1", ALL, id="0.11"),
        pytest.param(NriLevel(0, 12), "strange", "7", ALL, id="0.12 reports it"),
        pytest.param(NriLevel(0, 13), "containerd", "v2.5.0", ALL, id="0.13"),
    ],
)
async def test_a_known_level_gets_all_of_its_events_at_once(
    level: NriLevel, name: str, version: str, mask: int, tmp_path: Path
) -> None:
    plugin = recording([], *EVENT_HANDLERS)
    async with (
        Runtime(tmp_path, level, name, version) as runtime,
        live(runtime, plugin),
    ):
        assert masks(runtime) == [mask]
        assert runtime.dropped == ()


@pytest.mark.parametrize(
    ("names", "mask"),
    [
        pytest.param(["run_pod_sandbox"], 0x0001, id="the first event"),
        pytest.param(["validate_container_adjustment"], 0x2000, id="the last event"),
        pytest.param(
            ["create_container", "stop_container", "synchronize", "shutdown"],
            CREATE_AND_STOP,
            id="what is no event has no bit",
        ),
    ],
)
async def test_the_mask_is_that_of_the_handlers(
    names: list[str], mask: int, tmp_path: Path
) -> None:
    async with Runtime(tmp_path) as runtime, live(runtime, recording([], *names)):
        assert masks(runtime) == [mask]


@pytest.mark.parametrize(
    ("wanted", "mask"),
    [
        pytest.param(Event.STOP_CONTAINER.bit, 0x200, id="a part of the handlers"),
        pytest.param(None, CREATE_AND_STOP, id="None is all of them"),
        pytest.param(0, CREATE_AND_STOP, id="0 is all of them, not all events"),
    ],
)
async def test_configure_can_choose(
    wanted: int | None, mask: int, tmp_path: Path
) -> None:
    plugin = subscribing(wanted, "create_container", "stop_container")
    async with Runtime(tmp_path) as runtime, live(runtime, plugin):
        assert masks(runtime) == [mask]


async def test_configure_cannot_choose_an_event_without_a_handler(
    tmp_path: Path,
) -> None:
    plugin = subscribing(CREATE_AND_STOP, "create_container")
    async with Runtime(tmp_path) as runtime:
        with pytest.raises(BadHandler) as mistake:
            await asyncio.wait_for(stub_at(runtime, plugin).run(), 5)

    assert str(mistake.value) == (
        "configure() subscribed to StopContainer without a handler"
    )


@pytest.mark.parametrize(
    "level", [NriLevel(0, 3), NriLevel(0, 6, 1), NriLevel(0, 8)], ids=str
)
async def test_an_unknown_level_is_tried_wide_then_narrow_and_remembered(
    level: NriLevel, tmp_path: Path
) -> None:
    plugin = recording([], *EVENT_HANDLERS)
    async with (
        Runtime(tmp_path, level, "strange", "7") as runtime,
        running(stub_at(runtime, plugin)) as run,
    ):
        await runtime.synchronized(NAME)
        first = masks(runtime)
        await runtime.stop()
        await runtime.start()
        await runtime.synchronized(NAME)

        assert not run.done()
        assert (first, masks(runtime)) == ([ALL, 0x7FF], [ALL, 0x7FF, 0x7FF])


async def test_an_unknown_level_is_not_tried_where_nothing_wide_is_wanted(
    tmp_path: Path,
) -> None:
    plugin = recording([], "create_container", "stop_container")
    async with (
        Runtime(tmp_path, NriLevel(0, 6, 1), "strange", "7") as runtime,
        live(runtime, plugin),
    ):
        assert masks(runtime) == [CREATE_AND_STOP]


async def test_a_launched_plugin_sends_an_unknown_level_the_narrow_mask(
    tmp_path: Path,
) -> None:
    plugin = recording([], *EVENT_HANDLERS)
    async with (
        Runtime(tmp_path, NriLevel(0, 6, 1), "strange", "7") as runtime,
        running(launched_stub_at(runtime, plugin)),
    ):
        await runtime.synchronized(NAME)
        assert masks(runtime) == [0x7FF]


@pytest.mark.parametrize(
    ("level", "name", "version", "sentence"),
    [
        pytest.param(
            NriLevel(0, 9),
            "cri-o",
            "1.32.0",
            "cri-o 1.32.0 speaks NRI 0.9.0, which knows none of the events this "
            "plugin handles (ValidateContainerAdjustment)",
            id="known before subscribing",
        ),
        pytest.param(
            NriLevel(0, 6, 1),
            "strange",
            "7",
            "strange 7 speaks an unknown NRI version, which knows none of the events "
            "this plugin handles (ValidateContainerAdjustment)",
            id="learnt from a hang-up",
        ),
    ],
)
async def test_an_empty_mask_is_never_sent(
    level: NriLevel, name: str, version: str, sentence: str, tmp_path: Path
) -> None:
    plugin = recording([], "validate_container_adjustment")
    async with Runtime(tmp_path, level, name, version) as runtime:
        with pytest.raises(RuntimeTooOld) as refusal:
            await asyncio.wait_for(stub_at(runtime, plugin).run(), 5)

        assert str(refusal.value) == sentence
        assert 0 not in masks(runtime)
