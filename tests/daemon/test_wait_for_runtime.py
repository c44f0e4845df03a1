"""A daemon on a node without NRI is alive, and says what it lacks."""

from __future__ import annotations

import asyncio
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.testing import Runtime
from nri_resmgr.topology.synthetic import parse_spec
from tests.daemon.daemon_process import IDENTITY, RunningDaemon

pytestmark = pytest.mark.process

MACHINE: Final = parse_spec("2s2n2c2t")


def probed(endpoint: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{endpoint}{path}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


async def test_the_daemon_is_alive_and_not_ready_until_a_runtime_starts(
    tmp_path: Path,
) -> None:
    runtime, log = Runtime(tmp_path), tmp_path / "log"
    write_tree(sysfs_files(MACHINE), tmp_path / "host")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "nri_resmgr", "run", "--wait-for-runtime"),
        *("--nri-socket", str(runtime.socket_path), "--log-to", str(log)),
        *("--host-root", str(tmp_path / "host"), "--log-format", "json"),
        *("--health-endpoint", "127.0.0.1:0"),
    )
    daemon = RunningDaemon(runtime, process, log)
    try:
        absent = await daemon.line("runtime.absent")
        endpoint = (await daemon.line("health.listening"))["endpoint"]
        alive = await asyncio.to_thread(probed, endpoint, "/healthz")
        ready, why = await asyncio.to_thread(probed, endpoint, "/readyz")
        await runtime.start()
        await asyncio.wait_for(runtime.synchronized(IDENTITY), 60)
        await daemon.line("session.synchronized")
        at_last = await asyncio.to_thread(probed, endpoint, "/readyz")
    finally:
        process.terminate()
        await process.wait()
        await runtime.stop()

    assert absent["why"] == "no such file or directory"
    assert (alive[0], ready, at_last[0]) == (200, 503, 200)
    assert "is NRI enabled in the runtime" in why
    assert [line["event"] for line in daemon.lines()].count("runtime.absent") == 1
    assert process.returncode == 0
