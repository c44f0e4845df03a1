"""The differ as a process: what plugins between its sessions have changed."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from nri_proto import NriLevel
from nri_resmgr.stub import (
    Container,
    ContainerAdjustment,
    ContainerUpdate,
    LinuxCpu,
    LinuxResources,
    Pod,
)
from nri_resmgr.testing import Runtime, running_plugin
from tests.plugins.programs import PLUGINS, check_dropped, installed, running
from tests.plugins.stories import LEVELS

pytestmark = pytest.mark.process

PROGRAM = PLUGINS / "differ"


class Pins:
    """Another plugin, which sets a variable and CPUs."""

    def __init__(self, name: str, cpus: str) -> None:
        self.name = name
        self.cpus = cpus

    def create_container(self, _pod: Pod, container: Container) -> ContainerAdjustment:
        """Change the containers of one name only."""
        adjustment = ContainerAdjustment()
        if container.name != "app":
            return adjustment
        return adjustment.set_env(self.name, "1")

    def update_container(
        self, _pod: Pod, container: Container, _resources: LinuxResources
    ) -> ContainerUpdate | None:
        """Pin the container."""
        return ContainerUpdate(container.id).set_cpus(self.cpus) if self.cpus else None


def changed(log: Path) -> list[str]:
    lines = [line.partition("] ")[2].split() for line in log.read_text().splitlines()]
    return [" ".join(words[1:]) for words in lines if words[:1] == ["request.changed"]]


@pytest.mark.parametrize("level", LEVELS, ids=str)
async def test_changes_are_logged_between_the_sessions(
    tmp_path: Path, level: NriLevel
) -> None:
    config, log = tmp_path / "config.yaml", tmp_path / "log"
    config.write_text('indices: ["99", "50"]')
    async with Runtime(tmp_path, level) as runtime, AsyncExitStack() as stack:
        for identity, cpus in (("10-one", ""), ("60-two", "1-2")):
            plugin = Pins(identity[3:], cpus)
            await stack.enter_async_context(running_plugin(runtime, plugin, identity))
        flags = ("--socket", str(runtime.socket_path), "--config", str(config))
        async with running(PROGRAM, *flags, log=log):
            for index in ("00", "50", "99"):
                await runtime.synchronized(f"{index}-differ")
            pod = await runtime.run_pod(Pod(name="web", namespace="shop"))
            container = Container(name="app", env=("A=b",))
            created = await runtime.create_container(pod.id, container)
            await runtime.create_container(pod.id, Container(name="plain"))
            for _ in range(2):  # the first session compares nothing with the one before
                resources = LinuxResources(cpu=LinuxCpu(shares=512, cpus="0-3"))
                await runtime.update_container(created.container.id, resources)

    title = "container=shop/web/app"
    early, late = "between='00 and 50'", "between='50 and 99'"
    created_by = [
        f"after=['one=1'] before=[] {early} {title} field=env method=CreateContainer",
        f"after=['two=1'] before=[] {late} {title} field=env method=CreateContainer",
    ]
    updated_by = (
        f"after=1-2 before=0-3 {late} {title} field=cpu.cpus method=UpdateContainer"
    )
    assert changed(log) == [*created_by, updated_by, updated_by]


async def test_launched_it_has_its_index_and_that_of_the_document(
    tmp_path: Path,
) -> None:
    socket = tmp_path / "nri.sock"
    document = f'{{indices: ["05", "20"], socket: {socket}}}'
    options = installed(PROGRAM, "differ", document, tmp_path)
    async with Runtime(tmp_path, options=options) as runtime:
        for index in ("05", "20"):
            await runtime.synchronized(f"{index}-differ", within=30)
        found = runtime.plugins
        process = runtime.processes[0]

    assert found == ("05-differ", "10-differ", "20-differ")
    assert process.exit_status == 0


async def test_its_sessions_follow_a_restart_of_the_runtime(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with Runtime(tmp_path) as runtime:
        flags = ("--socket", str(runtime.socket_path))
        async with running(PROGRAM, *flags, log=log):
            for _ in range(2):
                for index in ("00", "99"):
                    await runtime.synchronized(f"{index}-differ", within=30)
                found = runtime.plugins
                await runtime.stop()
                await runtime.start()
            for index in ("00", "99"):
                await runtime.synchronized(f"{index}-differ", within=30)

    assert found == ("00-differ", "99-differ")
    assert log.read_text().count("session.registered") == 6


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        pytest.param("index: 1", "$.index: unknown key, did you mean", id="a key"),
        pytest.param("indices: [0, 99]", "$.indices[0]: expected text", id="a number"),
        pytest.param(
            'indices: ["1"]', "$.indices[0]: expected text matching", id="one"
        ),
    ],
)
async def test_a_wrong_document_is_reported(
    tmp_path: Path, document: str, sentence: str
) -> None:
    options = installed(PROGRAM, "differ", document, tmp_path)

    await check_dropped(tmp_path, options, sentence)
