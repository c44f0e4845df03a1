"""A plugin as a program: started by a runtime, or by other means."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from nri_proto import NriLevel
from nri_resmgr.stub import Container, Pod
from nri_resmgr.testing import Runtime
from tests.stub.live import NAME
from tests.stub.programs import program, run
from tests.test_runtime.launching import launching
from tests.waiting import until

pytestmark = pytest.mark.process

LARGE = "A=" + "1" * 3_000_000  # does not fit into the socket's buffer
WITNESS = """
import asyncio, contextlib, json, os, pathlib, subprocess

class DecisionObserver:
    def configure(self, configuration):
        child = subprocess.Popen(["/bin/sleep", "9"], close_fds=False)
        kept = pathlib.Path("/proc", str(child.pid))
        descriptors = []
        for fd in kept.joinpath("fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # its loader's
                descriptors.append(os.readlink(fd))
        pathlib.Path(FILE).write_text(json.dumps({
            "config": configuration.text,
            "environment": list(os.environ),
            "descriptor": os.readlink("/proc/self/fd/3"),
            "child's environment": kept.joinpath("environ").read_text(),
            "child's descriptors": descriptors,
        }))
        child.kill()
        child.wait()

    async def create_container(self, pod, container):
        pathlib.Path(FILE + ".begun").touch()
        await asyncio.sleep(0.3)
        return ContainerAdjustment().set_env("A", "1" * 3_000_000)

serve(DecisionObserver())
"""


def observer(path: Path, file: Path) -> Path:
    return program(path, f"FILE = {str(file)!r}\n{WITNESS}")


async def test_a_launched_plugin_has_three_variables_and_keeps_none(
    tmp_path: Path,
) -> None:
    file = tmp_path / "witness"
    observer(tmp_path / "plugins" / NAME, file)
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "py.conf").write_text("colour: \u2713\n")
    async with Runtime(tmp_path, options=launching(tmp_path)) as runtime:
        assert runtime.plugins == (NAME,)
        seen = json.loads(file.read_text())

    assert seen["config"] == "colour: \u2713\n"
    # Where there is no locale Python sets LC_CTYPE itself.
    assert set(seen["environment"]) <= {"LC_CTYPE"}
    assert "NRI_PLUGIN" not in seen["child's environment"]
    assert seen["descriptor"].startswith("socket:")
    assert seen["descriptor"] not in seen["child's descriptors"]


async def test_a_launched_plugin_ends_with_status_0_when_the_runtime_does(
    tmp_path: Path,
) -> None:
    observer(tmp_path / "plugins" / NAME, tmp_path / "witness")
    runtime = Runtime(tmp_path, options=launching(tmp_path))
    await runtime.start()
    process = runtime.processes[0]
    await runtime.stop()

    assert process.exit_status == 0
    assert "Traceback" not in (tmp_path / "output").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=str)
async def test_a_signal_lets_the_running_handler_answer(
    number: signal.Signals, tmp_path: Path
) -> None:
    file = tmp_path / "witness"
    observer(tmp_path / "plugins" / NAME, file)
    async with Runtime(tmp_path, options=launching(tmp_path)) as runtime:
        pod = await runtime.run_pod(Pod())
        creating = asyncio.create_task(runtime.create_container(pod.id, Container()))
        await until(file.with_name("witness.begun").exists)
        os.kill(runtime.processes[0].pid, number)
        created = await creating

        assert created.container.env == (LARGE,)
        assert await runtime.processes[0].wait() == 0


async def test_before_0_7_a_launched_plugin_is_never_synchronized_and_serves(
    tmp_path: Path,
) -> None:
    observer(tmp_path / "plugins" / NAME, tmp_path / "witness")
    async with Runtime(
        tmp_path, NriLevel(0, 6, 1), version="v1.7.20", options=launching(tmp_path)
    ) as runtime:
        pod = await runtime.run_pod(Pod())
        created = await runtime.create_container(pod.id, Container())

        assert created.container.env == (LARGE,)
        assert runtime.calls_to(NAME) == ["Configure", "CreateContainer"]


@pytest.mark.parametrize(
    ("call", "environment", "status", "sentence"),
    [
        pytest.param(
            "serve(Idle(), index='10', socket='/nowhere/nri.sock')",
            {},
            1,
            "cannot connect to the NRI socket /nowhere/nri.sock: no such file or "
            "directory; is NRI enabled in the runtime, and is this process root?",
            id="no socket",
        ),
        pytest.param(
            "serve(Idle())",
            {},
            2,
            "plugin 'idle': NN-name is needed, as in 10-idle",
            id="no index",
        ),
        pytest.param(
            "serve(Idle(), name='a b', index='10')",
            {},
            2,
            "plugin name 'a b': only letters, digits and _.+- are allowed",
            id="a bad name",
        ),
        pytest.param(
            "serve(Idle())",
            {
                "NRI_PLUGIN_IDX": "20",
                "NRI_PLUGIN_NAME": "x",
                "NRI_PLUGIN_SOCKET": "three",
            },
            2,
            "NRI_PLUGIN_SOCKET='three' is no open socket (invalid literal for int() "
            "with base 10: 'three'); unset it to connect by path",
            id="a descriptor that is none",
        ),
    ],
)
def test_bad_input_is_one_sentence(
    call: str, environment: dict[str, str], status: int, sentence: str, tmp_path: Path
) -> None:
    idle = "class Idle:\n    def stop_container(self, pod, container): ...\n"
    path = program(tmp_path / "idle", f"{idle}\n{call}\n")
    done = run(path, env=environment)

    assert (done.returncode, done.stderr) == (status, f"{path}: {sentence}\n")


async def test_a_runtime_that_is_too_old_is_one_sentence(tmp_path: Path) -> None:
    body = "class Late:\n    def validate_container_adjustment(self, _): ...\n"
    async with Runtime(tmp_path, NriLevel(0, 9), "cri-o", "1.32.0") as runtime:
        call = f"serve(Late(), index='10', socket={str(runtime.socket_path)!r})"
        path = program(tmp_path / "late", f"{body}\n{call}\n")
        done = await asyncio.to_thread(run, path)

    sentence = (
        f"{path}: cri-o 1.32.0 speaks NRI 0.9.0, which knows none of the events this "
        "plugin handles (ValidateContainerAdjustment)\n"
    )
    assert (done.returncode, done.stderr) == (1, sentence)
