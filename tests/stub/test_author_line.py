"""An error of a handler is logged with the author's line, without frames of the SDK."""

from __future__ import annotations

import json
import linecache
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from nri_resmgr.stub import (
    BadField,
    Container,
    ContainerAdjustment,
    ContainerUpdate,
    Mount,
    Pod,
)
from nri_resmgr.stub.convert import to_message
from nri_resmgr.testing import PluginRefused
from tests.stub.live import plugged

NEW = ContainerAdjustment()
WRONG: Any = 7  # such as from a document that was not checked


def helper() -> ContainerAdjustment:
    return NEW.set_env("A", WRONG)  # its line


def of_a_builder(_: Pod, __: Container) -> ContainerAdjustment:
    return helper()


def of_a_second_value(_: Pod, __: Container) -> ContainerAdjustment:
    made = NEW.set_cpus("0")
    return made.set_cpus("1")  # its line


async def of_a_coroutine(_: Pod, __: Container) -> ContainerAdjustment:
    return NEW.set_args(WRONG)  # its line


def of_the_result(_: Pod, __: Container) -> Any:  # its line
    return ContainerUpdate("c")


def of_a_field(_: Pod, __: Container) -> ContainerAdjustment:  # its line
    return NEW.set_mount(Mount("/data", options=WRONG))


def of_an_error(_: Pod, __: Container) -> None:
    [][WRONG]  # its line


def of_a_library(_: Pod, __: Container) -> None:
    json.loads("{")  # its line


@pytest.mark.parametrize(
    ("handler", "frames"),
    [
        pytest.param(of_a_builder, ["of_a_builder", "helper"], id="a wrong type"),
        pytest.param(of_a_second_value, ["of_a_second_value"], id="a field twice"),
        pytest.param(of_a_coroutine, ["of_a_coroutine"], id="in a coroutine"),
        pytest.param(of_the_result, None, id="the wrong result"),
        pytest.param(of_a_field, None, id="a wrong type in a value"),
        pytest.param(of_an_error, ["of_an_error"], id="an error of its own"),
        pytest.param(
            of_a_library,
            ["of_a_library", "loads", "decode", "raw_decode"],
            id="an error of a library, whose frames are shown as well",
        ),
    ],
)
async def test_an_error_is_logged_with_the_authors_line(
    handler: Callable[..., Any], frames: list[str] | None, tmp_path: Path
) -> None:
    plugin = type("Hello", (), {"create_container": staticmethod(handler)})()
    with capture_logs() as lines:
        async with plugged(tmp_path, plugin) as (runtime, _):
            pod = await runtime.run_pod(Pod())
            with pytest.raises(PluginRefused):
                await runtime.create_container(pod.id, Container())
    (line,) = [one for one in lines if one["event"] == "handler.failed"]

    file, _, number = line["at"].rpartition(":")
    text = linecache.getline(file, int(number))
    assert (file, text.partition("  # ")[2]) == (__file__, "its line\n")
    error = line["exc_info"]
    names = error and [one.name for one in traceback.extract_tb(error.__traceback__)]
    assert names == frames


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        pytest.param(
            lambda: NEW.set_cpu_shares(WRONG * 1.5),
            "linux.resources.cpu.shares: expected int, got float: 10.5",
            id="a number",
        ),
        pytest.param(
            lambda: NEW.set_annotation("a", WRONG),
            "annotations: expected str, got int: 7",
            id="text of a map",
        ),
        pytest.param(
            lambda: NEW.set_env({"A": WRONG}),
            "env: expected str, got int: 7",
            id="a value of a mapping",
        ),
        pytest.param(
            lambda: NEW.set_cpus(WRONG),
            "linux.resources.cpu.cpus: expected str, got int: 7",
            id="a list of CPUs",
        ),
        pytest.param(
            lambda: NEW.set_pids_limit(WRONG * "1"),
            "linux.resources.pids: expected int, got str: '1111111'",
            id="text in place of a number",
        ),
        pytest.param(
            lambda: NEW.set_mount(WRONG),
            "mounts: expected Mount, got int: 7",
            id="no mount",
        ),
        pytest.param(
            lambda: NEW.replace_device(WRONG),
            "linux.devices: expected Device, got int: 7",
            id="no device",
        ),
        pytest.param(
            lambda: NEW.set_args(["sh", WRONG]),
            "args: expected str, got int: 7",
            id="an argument",
        ),
    ],
)
def test_a_builder_checks_types(build: Callable[[], object], sentence: str) -> None:
    with pytest.raises(BadField) as mistake:
        build()

    assert str(mistake.value) == sentence


def test_a_number_of_another_library_is_a_number() -> None:
    class Number:
        def __index__(self) -> int:
            return 7

    shares: Any = Number()

    assert to_message(NEW.set_cpu_shares(shares)) == to_message(NEW.set_cpu_shares(7))
