"""Plugins the runtime starts itself."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from nri_proto import NriLevel, nri_pb2
from nri_resmgr.stub import Pod
from nri_resmgr.testing import (
    Misbehaviour,
    Runtime,
    RuntimeOptions,
    SessionStep,
    StartFailed,
)
from tests.test_runtime.launching import launching

ROOT = Path(__file__).resolve().parents[2]

# Registers as another than its file says, and reports what it was started with.
PROGRAM = f"""#!{sys.executable} -S
import json, os, socket, sys
sys.path[:0] = {[str(ROOT), *sys.path]!r}
report = {{
    "environment": open("/proc/self/environ").read(),  # as it was at the start
    "arguments": sys.argv[1:],
    "descriptors": sorted(
        int(name) for name in os.listdir("/proc/self/fd")
        if os.path.exists("/proc/self/fd/" + name)
    ),
    "standard": [os.readlink(f"/proc/self/fd/{{n}}") for n in range(3)],
}}
with open("REPORT", "w") as file:
    json.dump(report, file)
from tests.test_runtime.peer import Peer
peer = Peer(socket.socket(fileno=3), "ignored", "99")
peer.join()
"""


def install(folder: Path, name: str, text: str = PROGRAM) -> Path:
    """Put a program into the plugin folder; return where it reports."""
    folder.mkdir(exist_ok=True)
    report = folder.parent / f"{name}.json"
    path = folder / name
    path.write_text(text.replace("REPORT", str(report)))
    path.chmod(0o755)
    return report


def inherited_by_all() -> set[int]:
    """Return descriptors that whoever started the tests left open for children."""
    found = {int(path.name) for path in Path("/proc/self/fd").iterdir()}
    # The folder itself was open while it was listed.
    is_open = (number for number in found if Path(f"/proc/self/fd/{number}").exists())
    return {number for number in is_open if os.get_inheritable(number)}


async def test_a_plugin_is_started_with_three_variables_and_a_socket(
    tmp_path: Path,
) -> None:
    report = install(tmp_path / "plugins", "10-py-one")
    config = tmp_path / "conf.d"
    config.mkdir()
    (config / "py-one.conf").write_text("of all of the name")
    async with Runtime(tmp_path, options=launching(tmp_path)) as runtime:
        assert runtime.plugins == ("10-py-one",)
        await runtime.run_pod(Pod())
        calls = runtime.calls_to("10-py-one")
        configure = runtime.records[1].body
        (process,) = runtime.processes

    assert process.exit_status == 0
    assert (tmp_path / "output").read_text() == ""
    assert json.loads(report.read_text()) == {
        "environment": (
            "NRI_PLUGIN_NAME=py-one\0NRI_PLUGIN_IDX=10\0NRI_PLUGIN_SOCKET=3\0"
        ),
        "arguments": [],
        "descriptors": sorted({0, 1, 2, 3} | inherited_by_all()),
        "standard": [
            "/dev/null",
            str(tmp_path / "output"),
            str(tmp_path / "output"),
        ],
    }
    assert calls == ["Configure", "Synchronize", "RunPodSandbox"]
    assert isinstance(configure, nri_pb2.ConfigureRequest)
    assert configure.config == "of all of the name"


async def test_the_config_of_the_full_name_goes_first(tmp_path: Path) -> None:
    install(tmp_path / "plugins", "10-py")
    config = tmp_path / "conf.d"
    config.mkdir()
    (config / "py.conf").write_text("of all of the name")
    (config / "10-py.conf").write_text("of this one")
    async with Runtime(tmp_path, options=launching(tmp_path)) as runtime:
        configure = runtime.records[1].body

    assert isinstance(configure, nri_pb2.ConfigureRequest)
    assert configure.config == "of this one"


async def test_before_0_7_launched_plugins_are_never_synchronized(
    tmp_path: Path,
) -> None:
    install(tmp_path / "plugins", "10-py")
    level = NriLevel(0, 6, 1)
    async with Runtime(tmp_path, level, options=launching(tmp_path)) as runtime:
        await runtime.run_pod(Pod())

        assert runtime.calls_to("10-py") == [
            "Configure",
            "StateChange(RUN_POD_SANDBOX)",
        ]


async def test_folders_and_plain_files_are_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    install(folder, "README")
    (folder / "README").chmod(0o644)
    (folder / "lib").mkdir()
    async with Runtime(tmp_path, options=launching(tmp_path)) as runtime:
        assert runtime.processes == ()


@pytest.mark.parametrize("name", ["helper.sh", "1-one", "-x"])
async def test_another_executable_keeps_the_runtime_from_starting(
    name: str, tmp_path: Path
) -> None:
    install(tmp_path / "plugins", name)
    runtime = Runtime(tmp_path, options=launching(tmp_path))

    with pytest.raises(StartFailed, match="idx-pluginname expected"):
        await runtime.start()


async def test_a_plugin_that_ends_at_once_is_dropped(tmp_path: Path) -> None:
    install(tmp_path / "plugins", "10-bad", "#!/bin/sh\nexit 7\n")
    async with Runtime(tmp_path, options=launching(tmp_path)) as runtime:
        (process,) = runtime.processes

        assert await process.wait() == 7
        assert runtime.plugins == ()
        assert len(runtime.dropped) == 1


async def test_before_0_7_it_keeps_the_runtime_from_starting(tmp_path: Path) -> None:
    install(tmp_path / "plugins", "10-bad", "#!/bin/sh\nexit 7\n")
    runtime = Runtime(tmp_path, NriLevel(0, 6), options=launching(tmp_path))

    with pytest.raises(StartFailed):
        await runtime.start()


async def test_a_plugin_that_stays_is_killed_after_a_grace(tmp_path: Path) -> None:
    install(tmp_path / "plugins", "10-bad", "#!/bin/sh\nexec 3<&-\nsleep 60\n")
    folder = tmp_path / "plugins"
    patience = RuntimeOptions(plugin_folder=folder, grace=0.1)
    async with Runtime(tmp_path, options=patience) as runtime:
        (process,) = runtime.processes

    assert process.exit_status == -9


async def test_a_dropped_plugin_is_killed_at_the_next_event(tmp_path: Path) -> None:
    stays = PROGRAM.replace("peer.join()", "import time\ntime.sleep(60)")
    install(tmp_path / "plugins", "10-py", stays)
    async with Runtime(tmp_path, options=launching(tmp_path)) as runtime:
        (process,) = runtime.processes
        runtime.misbehave_now("10-py", Misbehaviour(hang_up=SessionStep.EVENT))
        await runtime.run_pod(Pod())

        assert await process.wait() == -9


async def test_a_broken_pipe_ends_a_plugin_as_ever(tmp_path: Path) -> None:
    program = "#!/bin/sh\nexec /bin/grep SigIgn /proc/self/status\n"
    install(tmp_path / "plugins", "10-sh", program)
    async with Runtime(tmp_path, options=launching(tmp_path)) as runtime:
        await runtime.wait_dropped()

    _, ignored = (tmp_path / "output").read_text().split()
    assert not int(ignored, 16) & (1 << signal.SIGPIPE - 1)
