"""A part that cannot come back fails /healthz, and ends the process in order."""

from __future__ import annotations

import asyncio
import http.client
import shlex
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.app.background.supervisor import LONGEST
from nri_resmgr.testing import Runtime
from nri_resmgr.values.exit_status import FAILED
from tests.daemon.host_nodes import (
    KERNEL,
    TREE,
    HostNode,
    contents,
    fast,
    host_node,
    quiet,
)
from tests.faults.later_clock import LaterClock
from tests.faults.thread_limits import Limit, threads_limit
from tests.host.cpu_trees import intel_pstate, write
from tests.test_runtime.launching import launching
from tests.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(600)]

ROOT: Final = Path(__file__).parents[2]
HEALTH: Final = ("--health-endpoint", "127.0.0.1:0")
WELL: Final = (200, "ok\n")

# Both need a thread after each decision. Which is lost first depends on their pauses.
ESSENTIAL: Final = {"checkpoint", "host"}
LOST: Final = (
    " s: RuntimeError: can't start new thread; the process ends to be started again"
)


@pytest.fixture
def limit() -> Iterator[Limit]:
    """Have a limit on threads, as that of a pod is."""
    with threads_limit("cgroup") as found:
        yield found


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LaterClock:
    """Have a clock for the daemons."""
    clock = LaterClock(tmp_path / "clock")
    for name, text in clock.environment.items():
        monkeypatch.setenv(name, text)
    return clock


@asynccontextmanager
async def launched_node(folder: Path, later: LaterClock) -> AsyncIterator[HostNode]:
    """Have the runtime launch the daemon itself, with the flags of `HostNode.running`.

    Its environment is the runtime's, so the program sets the variables.
    """
    write(folder / "host", intel_pstate() | KERNEL)
    runtime = Runtime(folder, options=launching(folder))
    node = HostNode(runtime, folder, contents(folder / "host"))
    node.document.write_text(TREE)
    program = folder / "plugins" / "90-resource-policy"
    program.parent.mkdir()
    variables = (f"{name}={text}" for name, text in later.environment.items())
    words = (sys.executable, "-m", "nri_resmgr", "run", *node.flags, *HEALTH)
    command = ("exec", "env", *variables, *words, "--config-file", str(node.document))
    program.write_text(f"#!/bin/sh\n{shlex.join(command)}\n")
    program.chmod(0o755)
    async with runtime:
        yield node


async def health(node: HostNode) -> tuple[int, str]:
    """Ask for liveness, as the kubelet does."""
    line = await node.says("health.listening")
    host, _, port = line["endpoint"].rpartition(":")

    def get() -> tuple[int, str]:
        with closing(http.client.HTTPConnection(host, int(port), timeout=5)) as one:
            one.request("GET", "/healthz")
            answer = one.getresponse()
            return answer.status, answer.read().decode()

    return await asyncio.to_thread(get)


async def without_threads(node: HostNode, limit: Limit, pid: int) -> None:
    """Let the daemon start no thread; decide something that it cannot write."""
    limit.set(pid)
    await node.pod("log", 1)
    await until(lambda: parts(node, "part.failed") >= ESSENTIAL)


def package_without(module: str, folder: Path) -> Path:
    """Copy our packages, as an interrupted upgrade may leave them."""
    for name in ("nri_resmgr", "nri_proto"):
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=skipped)
    (folder / module).unlink()
    return folder


def parts(node: HostNode, event: str) -> set[str]:
    return {line["part"] for line in node.said(event)}


async def test_the_process_ends_in_order(
    tmp_path: Path, later: LaterClock, limit: Limit
) -> None:
    async with host_node(tmp_path, TREE) as node:
        async with node.running(*HEALTH) as process:
            await node.pod("web", 2)
            await node.becomes(quiet(2, 6) | fast(2, 6))
            await until(lambda: node.kept() == {"web"})
            await without_threads(node, limit, process.pid)
            waiting, kept, pins = await health(node), node.kept(), node.cpus()
            later.jump(LONGEST)
            status = await asyncio.wait_for(process.wait(), 60)
        (lost,) = node.said("part.lost")
        last = node.kept(), node.changed()
        async with node.running(*HEALTH):
            await node.says("node.synchronized")
            next_one = await health(node), node.cpus()

    assert (waiting, kept) == (WELL, {"web"})  # it may pass within five minutes
    assert lost["part"] in ESSENTIAL
    assert lost["why"].startswith(f"{lost['part']} has failed for 3")
    assert lost["why"].endswith(LOST)
    assert (status, last) == (FAILED, ({"web", "log"}, {}))
    assert not (tmp_path / "state" / "host-changes").exists()
    assert next_one == (WELL, pins)


async def test_a_part_that_can_never_start_ends_the_process(
    tmp_path: Path, later: LaterClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "nri_resmgr/daemon/verification.py"
    # `python -m` looks there first.
    monkeypatch.chdir(package_without(module, tmp_path / "package"))
    async with host_node(tmp_path, TREE) as node:
        async with node.running(*HEALTH) as process:
            await until(lambda: parts(node, "part.failed") == {"verification"})
            await node.pod("web", 2)
            waiting = await health(node)
            later.jump(LONGEST)
            status = await asyncio.wait_for(process.wait(), 60)
        (lost,) = node.said("part.lost")

    assert waiting == WELL
    assert "No module named 'nri_resmgr.daemon.verification'" in lost["why"]
    assert (status, node.kept(), node.changed()) == (FAILED, {"web"}, {})


async def test_a_launched_process_fails_its_liveness_probe(
    tmp_path: Path, later: LaterClock, limit: Limit
) -> None:
    async with launched_node(tmp_path, later) as node:
        (process,) = node.runtime.processes
        await node.pod("web", 2)
        await node.becomes(quiet(2, 6) | fast(2, 6))
        await without_threads(node, limit, process.pid)
        later.jump(LONGEST)
        await until(lambda: parts(node, "part.lost") >= ESSENTIAL)
        code, why = await health(node)
        await node.pod("db", 1)  # it serves all the same
        limit.lift(process.pid)
        async with asyncio.timeout(60):
            while await health(node) != WELL:  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.1)
        await node.written()
        running = process.exit_status

    assert (code, running) == (503, None)
    assert "checkpoint has failed for 3" in why
    assert LOST in why
