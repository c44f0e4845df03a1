"""Plugins of the stub against the test runtime, in this process and in another."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nri_proto import NriLevel
from nri_resmgr.stub import Container, ContainerAdjustment, LinuxCpu, Plugin, Pod
from nri_resmgr.testing import (
    Misbehaviour,
    PluginEnded,
    PluginRunner,
    Runtime,
    SessionStep,
    plugin_process,
    running_plugin,
)

pytestmark = pytest.mark.process


def pin() -> Plugin:
    """Make a plugin that puts every container on CPU 1."""
    plugin = Plugin()

    @plugin.handler
    def create_container(pod: Pod, container: Container) -> ContainerAdjustment:
        return ContainerAdjustment().set_cpus("1")

    return plugin


@pytest.mark.parametrize(
    "level", [NriLevel(0, 3), NriLevel(0, 7), NriLevel(0, 13)], ids=str
)
async def test_a_plugin_in_this_process(level: NriLevel, tmp_path: Path) -> None:
    async with (
        Runtime(tmp_path, level) as runtime,
        running_plugin(runtime, pin(), "20-pin"),
    ):
        pod = await runtime.run_pod(Pod())
        created = await runtime.create_container(pod.id, Container())

    assert created.container.cpu == LinuxCpu(cpus="1")
    assert runtime.calls_to("20-pin") == ["Configure", "Synchronize", "CreateContainer"]


async def test_the_stub_comes_back_after_the_runtime_hung_up(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime, running_plugin(runtime, pin()):
        runtime.misbehave_now("10-plugin", Misbehaviour(hang_up=SessionStep.EVENT))
        pod = await runtime.run_pod(Pod())
        await runtime.create_container(pod.id, Container())
        await runtime.synchronized("10-plugin")
        created = await runtime.create_container(pod.id, Container())

    assert runtime.container("ctr0").cpu == LinuxCpu()
    assert created.container.cpu == LinuxCpu(cpus="1")


async def test_the_plugins_of_a_runner_end_with_it(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        async with PluginRunner(runtime) as run:
            await run(pin(), "20-pin")
            await run(pin(), "10-other")
            running = runtime.plugins
        for plugin in running:
            await runtime.gone(plugin)

        assert (running, runtime.plugins) == (("10-other", "20-pin"), ())


PROGRAM = f"""
import sys
sys.path[:0] = {sys.path!r}
from tests.test_runtime.peer import Peer
peer = Peer.connect(sys.argv[1], "py", "10")
peer.join()
"""


async def test_a_plugin_in_another_process(tmp_path: Path) -> None:
    command = (sys.executable, "-c", PROGRAM)
    async with Runtime(tmp_path) as runtime:
        path = str(runtime.socket_path)
        async with plugin_process(runtime, *command, path, identity="10-py") as process:
            await runtime.run_pod(Pod())

        assert process.returncode == -15
        assert "RunPodSandbox" in runtime.calls_to("10-py")


async def test_a_process_that_ends_early_reports_why(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        with pytest.raises(PluginEnded) as ended:
            async with plugin_process(
                runtime, "/bin/sh", "-c", "echo $NRI_PLUGIN_IDX is lost >&2; exit 3"
            ):
                pass

    assert str(ended.value) == "the plugin ended with status 3: 10 is lost"


async def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    ignoring = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    command = (sys.executable, "-c", f"{ignoring}{PROGRAM}")
    async with Runtime(tmp_path) as runtime:
        path = str(runtime.socket_path)
        async with plugin_process(runtime, *command, path, identity="10-py") as process:
            pass

    assert process.returncode == -9


async def test_a_process_gets_variables_and_its_output_is_passed_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with Runtime(tmp_path) as runtime:
        with pytest.raises(PluginEnded) as ended:
            async with plugin_process(
                runtime,
                *("/bin/sh", "-c", "echo $WORD; echo $NRI_PLUGIN_NAME >&2; exit 3"),
                environment={"WORD": "hello"},
                shows_output=True,
            ):
                pass

    assert (ended.value.exit_status, ended.value.output) == (3, "")
    assert tuple(capfd.readouterr()) == ("", "hello\nplugin\n")
