"""A handler that takes a quarter of its request's time is logged by its name."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nri_resmgr.stub import Container, Pod
from nri_resmgr.testing import Runtime, RuntimeOptions
from tests.stub.live import plugged

pytestmark = pytest.mark.slow  # waits as long as a slow handler

# A busy machine may add as much again before the runtime ends the session.
SLOW, TIMEOUT, PATIENT = 1.1, 4.0, 240.0  # seconds


class Sleepy:
    """Three handlers take a second, each in another way."""

    def create_container(self, _: Pod, __: Container) -> None:
        """Block."""
        time.sleep(SLOW)

    async def start_container(self, _: Pod, __: Container) -> None:
        """Wait."""
        await asyncio.sleep(SLOW)

    def post_start_container(self, _: Pod, __: Container) -> None:
        """Block, and fail."""
        time.sleep(SLOW)
        raise ValueError("too tired")

    def synchronize(self, _: object, __: object) -> None:
        """Block; it has a line of its own."""
        time.sleep(SLOW)


async def start_container(runtime: Runtime) -> None:
    pod = await runtime.run_pod(Pod())
    created = await runtime.create_container(pod.id, Container())
    await runtime.start_container(created.container.id)


async def slow_lines(directory: Path, limit: float) -> list[tuple[object, object]]:
    options = RuntimeOptions(request_timeout=limit)
    with capture_logs() as lines:
        async with plugged(directory, Sleepy(), runtime_options=options) as (
            runtime,
            _,
        ):
            await start_container(runtime)
    return [
        (line["handler"], line["method"])
        for line in lines
        if line["event"] == "handler.slow"
    ]


async def test_a_slow_handler_is_logged_by_its_name(tmp_path: Path) -> None:
    assert await slow_lines(tmp_path, TIMEOUT) == [
        ("Sleepy.create_container", "CreateContainer"),
        ("Sleepy.start_container", "StartContainer"),
        ("Sleepy.post_start_container", "PostStartContainer"),
    ]


async def test_the_same_time_is_little_where_the_runtime_waits_longer(
    tmp_path: Path,
) -> None:
    assert await slow_lines(tmp_path, PATIENT) == []
