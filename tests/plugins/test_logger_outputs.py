"""What the logger does when its output, or its runtime, goes away."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
import yaml

from nri_resmgr.stub import Container, Pod
from nri_resmgr.testing import Runtime
from tests.plugins.programs import PLUGINS, running
from tests.security.hostile import FORGED, VALID, forged_in, found_in

pytestmark = pytest.mark.process

LOGGER = PLUGINS / "logger"


async def test_the_logger_ends_when_its_output_is_closed(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    async with Runtime(tmp_path) as runtime:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            LOGGER,
            "--socket",
            str(runtime.socket_path),
            stdout=writer,
            stderr=asyncio.subprocess.PIPE,
        )
        os.close(writer)
        await runtime.synchronized("99-logger")
        os.close(reader)
        await runtime.run_pod(Pod())
        async with asyncio.timeout(20):
            _, said = await process.communicate()

        assert (process.returncode, b"Traceback" in said) == (0, False)
        assert runtime.plugins == ()


async def test_a_full_disk_holds_no_container_up(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        socket = str(runtime.socket_path)
        async with running(LOGGER, "--socket", socket, "--log-file", "/dev/full"):
            await runtime.synchronized("99-logger")
            pod = await runtime.run_pod(Pod())
            await runtime.create_container(pod.id, Container())

            assert runtime.plugins == ("99-logger",)


async def test_the_logger_continues_after_a_restart_of_the_runtime(
    tmp_path: Path,
) -> None:
    log_file = tmp_path / "log"
    async with Runtime(tmp_path) as runtime:
        flags = ("--socket", str(runtime.socket_path), "--log-file", str(log_file))
        async with running(LOGGER, *flags):
            await runtime.synchronized("99-logger")
            await runtime.stop()
            await runtime.start()
            await runtime.synchronized("99-logger")
            await runtime.run_pod(Pod())
    entries = yaml.safe_load_all(log_file.read_text())

    assert [entry["request"] for entry in entries if "request" in entry] == [
        *("RegisterPlugin", "Configure", "Synchronize") * 2,
        "RunPodSandbox",
    ]


@pytest.mark.parametrize("style", ["yaml", "json"])
async def test_the_logger_escapes_names_as_parsers_read_them(
    style: str, tmp_path: Path
) -> None:
    log_file = tmp_path / "log"
    name = f"{VALID}\n{FORGED} ✓"
    async with Runtime(tmp_path) as runtime:
        flags = ("--socket", str(runtime.socket_path), "--log-file", str(log_file))
        async with running(LOGGER, *flags, "--format", style):
            await runtime.synchronized("99-logger")
            await runtime.run_pod(Pod(name=name))
    text = log_file.read_text()
    entries = (
        yaml.safe_load_all(text)
        if style == "yaml"
        else map(json.loads, text.split("\n")[:-1])
    )
    found = [one for one in entries if one.get("request") == "RunPodSandbox"]

    assert found_in(text) == set()
    assert forged_in(text) == []
    assert [one["message"]["pod"]["name"] for one in found] == [name]
