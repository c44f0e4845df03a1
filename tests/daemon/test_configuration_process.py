"""The real daemon, its files and flags, and runtimes that hand documents over."""

from __future__ import annotations

import asyncio
import itertools
import signal
import sys
from pathlib import Path
from typing import Final

import pytest

from nri_proto import NriLevel
from nri_resmgr.daemon.configuration_cache import CACHE_NAME
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.stub import Container, LinuxCpu, LinuxPod, LinuxResources, Pod
from nri_resmgr.stub.model import LinuxContainer
from nri_resmgr.testing import Runtime, RuntimeOptions, plugin_process
from tests.app.node import SAFE, UNSAFE
from tests.cli.command import nri_resmgr
from tests.daemon.documents import BAD, MACHINE, document, write
from tests.waiting import until

pytestmark = pytest.mark.process

ROOT: Final = Path(__file__).parents[2]
NAME: Final = "90-resource-policy"


def flags(tmp_path: Path) -> tuple[str, ...]:
    """Give the daemon a machine of eight CPUs, and folders of its own."""
    host = tmp_path / "host"
    if not host.exists():
        write_tree(sysfs_files(MACHINE), host)
    return (
        *("--host-root", str(host), "--state-dir", str(tmp_path / "state")),
        *("--run-dir", str(tmp_path / "run"), "--control-socket", ""),
    )


async def run(runtime: Runtime, name: str) -> None:
    linux = LinuxPod(cgroup_parent="/kubepods.slice/kubepods-burstable.slice")
    await runtime.run_pod(Pod(id=f"pod-{name}", name=name, linux=linux))
    asked = LinuxContainer(resources=LinuxResources(cpu=LinuxCpu(256)))
    await runtime.create_container(
        f"pod-{name}", Container(id=name, name=name, linux=asked)
    )
    await runtime.start_container(name)


def cpus(runtime: Runtime, name: str) -> str:
    return runtime.world.containers[name].linux.resources.cpu.cpus


# Shared CPUs are all but the reserved one, with the topology-aware policy.
def tree(cpu: int) -> str:
    return document(cpu, "TopologyAwarePolicy")


def shared(cpu: int) -> str:
    return {0: "1-7", 1: "0,2-7", 2: "0-1,3-7", 3: "0-2,4-7", 7: "0-6"}[cpu]


@pytest.mark.parametrize(
    ("level", "when", "by_itself"),
    [
        pytest.param(SAFE, "auto", True, id="auto: where it is safe"),
        pytest.param(UNSAFE, "auto", False, id="auto: not where it can dead-lock"),
        pytest.param(NriLevel(0, 6), "auto", False, id="auto: not with an old one"),
        pytest.param(SAFE, "never", False, id="never"),
        pytest.param(UNSAFE, "always", True, id="always"),
        pytest.param(NriLevel(0, 6), "always", True, id="always, with an old one"),
    ],
)
async def test_unsolicited_updates(
    tmp_path: Path,
    level: NriLevel,
    when: str,
    by_itself: bool,  # noqa: FBT001 - a column of the table
) -> None:
    path = write(tmp_path / "my.yaml", tree(0))
    async with Runtime(tmp_path, level) as runtime:
        command = ("-m", "nri_resmgr", "run", *flags(tmp_path))
        more = ("--config-file", str(path), "--unsolicited-updates", when)
        socket = ("--nri-socket", str(runtime.socket_path))
        async with plugin_process(
            runtime, sys.executable, *command, *more, *socket, identity=NAME
        ) as process:
            await run(runtime, "web")
            assert cpus(runtime, "web") == shared(0)
            write(path, tree(7))
            process.send_signal(signal.SIGHUP)
            async with asyncio.timeout(10):
                for number in itertools.count():
                    if cpus(runtime, "web") == shared(7):
                        break
                    await asyncio.sleep(0.05)
                    if not by_itself:  # some reply carries it
                        await run(runtime, f"other{number}")

    calls = {one.method for one in runtime.records}
    assert ("UpdateContainers" in calls) == by_itself


async def test_a_file_is_followed_and_signals_do_no_harm(tmp_path: Path) -> None:
    path = write(tmp_path / "my.yaml", tree(0))
    async with Runtime(tmp_path) as runtime:
        command = ("-m", "nri_resmgr", *flags(tmp_path), "--config-file", str(path))
        socket = ("--nri-socket", str(runtime.socket_path))
        async with plugin_process(
            runtime, sys.executable, *command, *socket, identity=NAME
        ) as process:
            await run(runtime, "web")
            for number in range(300):
                if number % 100 == 0:
                    write(path, tree(number // 100 + 1))
                process.send_signal(signal.SIGHUP)
            await until(lambda: cpus(runtime, "web") == shared(3))
            write(path, tree(7))  # seen without a signal
            await until(lambda: cpus(runtime, "web") == shared(7))
    calls = [one for one in runtime.records if one.method == "UpdateContainers"]

    # A storm of signals is one reading, or a few.
    assert len(calls) < 20


def installed(tmp_path: Path, text: str) -> RuntimeOptions:
    """Install the daemon with this document, for a runtime to launch."""
    words = " ".join(("run", *(word or "''" for word in flags(tmp_path))))
    plugins, conf = tmp_path / "plugins", tmp_path / "conf.d"
    for folder in (plugins, conf):
        folder.mkdir(exist_ok=True)
    program = plugins / NAME
    python = f"PYTHONPATH={ROOT} exec {sys.executable}"
    program.write_text(f"#!/bin/sh\n{python} -m nri_resmgr {words}\n")
    program.chmod(0o755)
    (conf / f"{NAME}.conf").write_text(text)
    return RuntimeOptions(
        plugin_folder=plugins,
        config_folder=conf,
        plugin_output=tmp_path / "output",
        registration_timeout=20.0,  # a busy machine starts Python slowly
        request_timeout=10.0,
    )


async def test_a_document_of_the_runtime_stays_in_force_after_invalid_ones(
    tmp_path: Path,
) -> None:
    found = {}
    stories = {"good": tree(2), "bad": BAD, "gone": "", "bad again": BAD}
    for what, text in stories.items():
        options = installed(tmp_path, text)
        async with Runtime(tmp_path, SAFE, options=options) as runtime:
            await run(runtime, "web")
            found[what] = cpus(runtime, "web")
            await asyncio.sleep(0.2)
    said = (tmp_path / "output").read_text()

    assert found == {
        "good": shared(2),
        "bad": shared(2),  # the one that was accepted last
        "gone": shared(0),  # the default: the runtime has taken it back
        "bad again": shared(0),
    }
    assert not (tmp_path / "state" / CACHE_NAME).exists()
    assert "configuration.in-force" in said
    assert "source='runtime (cached)'" in said


async def test_before_0_7_a_mistake_does_not_stop_the_runtime(tmp_path: Path) -> None:
    options = installed(tmp_path, BAD)
    async with Runtime(tmp_path, NriLevel(0, 6), options=options) as runtime:
        await run(runtime, "web")

        assert cpus(runtime, "web") == shared(0)


def cached(tmp_path: Path) -> Path:
    state = StateDir.open(str(tmp_path / "state"))
    state.write(CACHE_NAME, "something")
    state.close()
    return tmp_path / "state" / CACHE_NAME


def test_the_cached_document_can_be_reset(tmp_path: Path) -> None:
    path = cached(tmp_path)
    for _ in range(2):
        done = nri_resmgr("run", "--reset-config", "--state-dir", path.parent)

        assert (done.returncode, path.exists()) == (0, False)


def test_the_cached_document_cannot_be_reset_while_a_daemon_runs(
    tmp_path: Path,
) -> None:
    path = cached(tmp_path)
    state = StateDir.open(str(path.parent))
    state.lock()
    done = nri_resmgr("run", "--reset-config", "--state-dir", path.parent)
    state.close()

    assert (done.returncode, path.exists()) == (1, True)
    assert f"{path.parent} is in use by process" in done.stderr


def test_configuration_file_and_fallback_exclude_each_other(tmp_path: Path) -> None:
    path = write(tmp_path / "my.yaml", document(0))
    done = nri_resmgr(
        *("run", "--config-file", path, "--fallback-config", path),
        *flags(tmp_path),
    )

    assert done.returncode == 2
    assert "--config-file and --fallback-config exclude each other" in done.stderr
