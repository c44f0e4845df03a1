"""``nri-resmgr inspect`` beside other plugins, on the test runtime."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from nri_proto import NriLevel
from nri_resmgr.stub import (
    Container,
    ContainerAdjustment,
    ContainerUpdate,
    CreateReply,
    LinuxCpu,
    LinuxResources,
    Pod,
    RequestRejected,
)
from nri_resmgr.testing import Runtime, RuntimeRefusal, running_plugin
from tests.cli.command import ROOT, nri_resmgr
from tests.plugins.stories import LEVELS

pytestmark = pytest.mark.process

OWNERS = NriLevel(0, 11)  # the first one with owners that knows RDT settings


class Env:
    """Sets a variable in containers that are called ``app``."""

    def create_container(
        self, _pod: Pod, container: Container
    ) -> ContainerAdjustment | None:
        """Change it, or refuse the one that is called ``bad``."""
        if container.name == "bad":
            raise RequestRejected("bad")
        if container.name != "app":
            return None
        return ContainerAdjustment().set_env("A", "1")


class Pins:
    """Pins containers that are called ``app``, and updates ``ctr0``."""

    def create_container(self, _pod: Pod, container: Container) -> CreateReply | None:
        """Set also what later plugins do not see."""
        if container.name != "app":
            return None
        adjustment = ContainerAdjustment().set_cpus("1-2").set_rdt_clos_id("gold")
        adjustment = adjustment.add_cdi_device("a.com/b=c")
        return CreateReply(adjustment, (ContainerUpdate("ctr0").set_cpu_shares(2),))

    def update_container(
        self, _pod: Pod, container: Container, _resources: LinuxResources
    ) -> ContainerUpdate:
        """Pin it again."""
        return ContainerUpdate(container.id).set_cpus("1-2")


@asynccontextmanager
async def inspecting(
    runtime: Runtime, *flags: str, output: int = subprocess.PIPE
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the command until the block ends; *output* takes its lines."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "nri_resmgr", "inspect"),
        *("--nri-socket", str(runtime.socket_path), *flags),
        env={"PYTHONPATH": str(ROOT)},
        stdout=output,
        stderr=subprocess.PIPE,
    )
    try:
        for index in ("00", "99"):
            await runtime.synchronized(f"{index}-inspect", within=30)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def ended(process: asyncio.subprocess.Process) -> tuple[list[str], str]:
    """End it as Ctrl-C does; return its lines without times, and standard error."""
    process.send_signal(signal.SIGINT)
    shown, said = await process.communicate()
    assert process.returncode == 0, said.decode()
    return [line.partition("Z  ")[2] for line in shown.decode().splitlines()], (
        said.decode()
    )


@asynccontextmanager
async def node(directory: Path, level: NriLevel) -> AsyncIterator[Runtime]:
    """Run a runtime with both plugins."""
    async with Runtime(directory, level) as runtime, AsyncExitStack() as stack:
        for identity, plugin in (("10-env", Env()), ("60-pins", Pins())):
            await stack.enter_async_context(running_plugin(runtime, plugin, identity))
        yield runtime


async def play(runtime: Runtime) -> None:
    """Create two containers, and update the second one."""
    pod = await runtime.run_pod(Pod(name="web", namespace="shop"))
    await runtime.create_container(pod.id, Container(name="log"))
    created = await runtime.create_container(pod.id, Container(name="app"))
    resources = LinuxResources(cpu=LinuxCpu(cpus="0-3"))
    await runtime.update_container(created.container.id, resources)


SEEN = "env +A=1; linux.resources.cpu.cpus unset -> 1-2"
UPDATED = "UpdateContainer  shop/web/app  cpu.cpus 0-3 -> 1-2"


@pytest.mark.parametrize("level", LEVELS, ids=str)
async def test_each_request_has_a_line(level: NriLevel, tmp_path: Path) -> None:
    async with node(tmp_path, level) as runtime, inspecting(runtime) as process:
        await play(runtime)
        lines, said = await ended(process)

    assert lines == [
        "CreateContainer  shop/web/log  unchanged",
        f"CreateContainer  shop/web/app  {SEEN}",
        UPDATED,
    ]
    assert said.count("session.registered") == 2
    assert "warning" not in said


async def test_owners_are_those_of_the_runtime(tmp_path: Path) -> None:
    async with (
        node(tmp_path, OWNERS) as runtime,
        inspecting(runtime, "--owners") as process,
    ):
        await play(runtime)
        lines, _ = await ended(process)

    unseen = 'CDI_devices +{"name":"a.com/b=c"}; linux.rdt.clos_id unset -> gold'
    updates = "updates ctr0: resources.cpu.shares 2"
    owners = (
        "[10-env: env A; 60-pins: cdi_devices a.com/b=c, cpu_set_cpus, rdt_clos_id]"
    )
    assert lines == [
        "CreateContainer  shop/web/log  unchanged",
        f"CreateContainer  shop/web/app  {SEEN}; {unseen}  {updates}  {owners}",
        UPDATED,
    ]


async def test_without_owners_in_the_runtime_the_rest_is_shown(tmp_path: Path) -> None:
    async with (
        node(tmp_path, NriLevel(0, 8)) as runtime,
        inspecting(runtime, "--owners", "--changed") as process,
    ):
        await play(runtime)
        lines, said = await ended(process)

    assert lines == [f"CreateContainer  shop/web/app  {SEEN}", UPDATED]
    assert "nri-resmgr: no owners: containerd v" in said
    assert "has NRI 0.8.0, 0.10 has them\n" in said


async def test_an_object_per_line_for_programs(tmp_path: Path) -> None:
    found: list[dict[str, Any]] = []
    async with (
        node(tmp_path, OWNERS) as runtime,
        inspecting(runtime, "--owners", "-o", "json", "--changed") as process,
    ):
        await play(runtime)
        process.send_signal(signal.SIGTERM)
        shown, _ = await process.communicate()
    for line in shown.splitlines():
        found.append(json.loads(line))
        assert found[-1].pop("time").endswith("Z")
        assert found[-1].pop("apiVersion") == "cli.nri/v1"
        assert found[-1].pop("kind") == "InspectedRequest"

    cpus = {"field": "linux.resources.cpu.cpus", "before": None, "after": "1-2"}
    assert found == [
        {
            "method": "CreateContainer",
            "container": "shop/web/app",
            "compared": True,
            "changes": [
                {"field": "env", "before": [], "after": ["A=1"]},
                cpus,
                {
                    "field": "CDI_devices",
                    "before": [],
                    "after": [{"name": "a.com/b=c"}],
                },
                {"field": "linux.rdt.clos_id", "before": None, "after": "gold"},
            ],
            "owners": {
                "10-env": ["env A"],
                "60-pins": ["cdi_devices a.com/b=c", "cpu_set_cpus", "rdt_clos_id"],
            },
            "updates": {"ctr0": {"resources": {"cpu": {"shares": 2}}}},
        },
        {
            "method": "UpdateContainer",
            "container": "shop/web/app",
            "compared": True,
            "changes": [{"field": "cpu.cpus", "before": "0-3", "after": "1-2"}],
        },
    ]


async def test_a_request_that_fails_before_it_has_no_line(tmp_path: Path) -> None:
    async with (
        node(tmp_path, OWNERS) as runtime,
        inspecting(runtime, "--owners") as process,
    ):
        pod = await runtime.run_pod(Pod(name="web", namespace="shop"))
        with pytest.raises(RuntimeRefusal):
            await runtime.create_container(pod.id, Container(name="bad"))
        await runtime.create_container(pod.id, Container(name="log"))
        lines, _ = await ended(process)

    assert lines == ["CreateContainer  shop/web/log  unchanged"]


async def test_a_creation_that_fails_after_it_has_a_line(tmp_path: Path) -> None:
    async with (
        node(tmp_path, OWNERS) as runtime,
        inspecting(runtime, "--owners") as process,
        running_plugin(runtime, Env(), "99-later"),  # in conflict with 10-env
    ):
        pod = await runtime.run_pod(Pod(name="web", namespace="shop"))
        await runtime.create_container(pod.id, Container(name="log"))
        with pytest.raises(RuntimeRefusal):
            await runtime.create_container(pod.id, Container(name="app"))
        await runtime.create_container(pod.id, Container(name="log"))
        lines, _ = await ended(process)

    assert lines == [
        "CreateContainer  shop/web/log  unchanged",
        f"CreateContainer  shop/web/app  {SEEN}",
        "CreateContainer  shop/web/log  unchanged",
    ]


async def test_it_follows_a_restart_of_the_runtime(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime, inspecting(runtime) as process:
        await runtime.stop()
        await runtime.start()
        for index in ("00", "99"):
            await runtime.synchronized(f"{index}-inspect", within=30)
        pod = await runtime.run_pod(Pod(name="web", namespace="shop"))
        await runtime.create_container(pod.id, Container(name="app"))
        lines, said = await ended(process)

    assert lines == ["CreateContainer  shop/web/app  unchanged"]
    assert said.count("session.registered") == 4


async def test_a_request_without_the_first_session_is_not_compared(
    tmp_path: Path,
) -> None:
    async with Runtime(tmp_path) as runtime, inspecting(runtime) as process:
        first = runtime.roster.named("00-inspect")
        assert first is not None
        first.mask = 0  # it gets no requests
        pod = await runtime.run_pod(Pod(name="web", namespace="shop"))
        await runtime.create_container(pod.id, Container(name="app"))
        lines, _ = await ended(process)

    why = "not compared: 00-inspect was not connected"
    assert lines == [f"CreateContainer  shop/web/app  {why}"]


async def test_it_ends_with_the_reader_of_its_lines(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    async with Runtime(tmp_path) as runtime, AsyncExitStack() as stack:
        process = await stack.enter_async_context(inspecting(runtime, output=theirs))
        os.close(theirs)
        os.close(ours)
        pod = await runtime.run_pod(Pod())
        await runtime.create_container(pod.id, Container())
        async with asyncio.timeout(30):
            _, said = await process.communicate()

    assert process.returncode == 1
    assert b"Traceback" not in said
    assert b"rror" not in said


async def test_a_reader_that_stops_delays_no_request(tmp_path: Path) -> None:
    long = "x" * 10_000
    environment = tuple(f"V{number}={long}" for number in range(20))

    class Large:
        def create_container(self, _: Pod, __: Container) -> ContainerAdjustment:
            pairs = dict(one.split("=") for one in environment)
            return ContainerAdjustment().set_env(pairs)

    async with Runtime(tmp_path) as runtime, AsyncExitStack() as stack:
        await stack.enter_async_context(running_plugin(runtime, Large()))
        process = await stack.enter_async_context(inspecting(runtime))
        pod = await runtime.run_pod(Pod(name="web", namespace="shop"))
        for number in range(5):  # more than a pipe and asyncio's buffer of it take
            await runtime.create_container(pod.id, Container(name=f"c{number}"))
        lost = len(runtime.plugins)
        lines, _ = await ended(process)

    assert lost == 3  # all plugins are still there
    assert [line.split()[1] for line in lines] == [
        f"shop/web/c{number}" for number in range(5)
    ]


def test_without_a_runtime_there_is_a_sentence(tmp_path: Path) -> None:
    done = nri_resmgr("inspect", "--nri-socket", tmp_path / "none")

    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert line.startswith(f"nri-resmgr: cannot connect to the NRI socket {tmp_path}")
