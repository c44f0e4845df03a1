"""Plugins that containerd itself launches, and plugins that are too late."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from nri_resmgr.cli.install import shipped
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import CpuSet
from tests.real_host.binaries import Binaries
from tests.real_host.containerd import Containerd
from tests.real_host.containerd_config import Layout, Options
from tests.real_host.documents import STATIC
from tests.real_host.patience import patience, wait_until
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import Container, PodSpec
from tests.real_host.resources import Resources

pytestmark = pytest.mark.containerd

MACHINE = read_machine(HostTree("/"))
# No container shares CPUs that isolcpus= names.
ALL = MACHINE.online - MACHINE.isolated
MANY = len(ALL) // 2
POLICY = "92-resource-policy"  # its launcher

# Blocks the event loop itself, as a plugin with a bug would.
LATE_PLUGIN = """
import sys, time
from nri_resmgr.log.output import LogFormat, configure_logging
from nri_resmgr.stub import ContainerAdjustment, PluginFlags, serve

class Late:
    def synchronize(self, pods, containers):
        pass

    def create_container(self, pod, container):
        if container.name == "slow":
            time.sleep(float(sys.argv[2]))
        return ContainerAdjustment().set_env("TOUCHED", "yes")

configure_logging("info", LogFormat.JSON)
serve(Late(), name="late", index="50", flags=PluginFlags(socket=sys.argv[1]))
"""

# Waits for ever, politely: the event loop goes on.
PATIENT_PLUGIN = """
import asyncio, sys
from nri_resmgr.log.output import LogFormat, configure_logging
from nri_resmgr.stub import ContainerAdjustment, PluginFlags, current_request, serve

class Patient:
    def synchronize(self, pods, containers):
        pass

    async def create_container(self, pod, container):
        current_request().safe_answer = ContainerAdjustment().set_env(
            "TOUCHED", "safely"
        )
        await asyncio.Event().wait()

configure_logging("info", LogFormat.JSON)
serve(Patient(), name="patient", index="50", flags=PluginFlags(socket=sys.argv[1]))
"""


def install_shipped(layout: Layout) -> None:
    """Install every plugin that we ship."""
    documents = {
        "differ": f'indices: ["80", "99"]\nsocket: {layout.nri_socket}\n',
        "device-injector": "",
        "hook-injector": f"directories: [{layout.folder / 'hooks'}]\n",
        "memory-policy": "",
        "memory-qos": "",
        "network-device-injector": "",
        "network-logger": "",
        "rdt": "",
        "sgx-epc": "",
        "ulimit-adjuster": "",
        "writable-cgroups": "",
        "logger": f"logFile: {printed_file(layout)}\nformat: json\nnames: [greeted]\n",
        "resource-policy": STATIC,
        "template": "greeting: ahoy\n",
    }
    # A new plugin needs a document here, and a test. The releases that there are cannot
    # validate, and would not start with a validator.
    names = {path.name for path in shipped("plugins").iterdir()} - {"validator"}
    assert names == set(documents)
    for index, (name, document) in enumerate(documents.items(), 80):
        install(layout, name, index, document)
    keep_apart(layout.plugins / POLICY, layout.folder)


def printed_file(layout: Layout) -> Path:
    """Where the logger prints, a line of JSON per message."""
    return layout.folder / "logger.jsonl"


def install(layout: Layout, name: str, index: int, document: str) -> None:
    config = layout.folder / f"{name}.yaml"
    config.write_text(document)
    folders = ("--plugin-dir", layout.plugins, "--config-dir", layout.conf_d)
    flags = ("--index", str(index), "--config", config, *folders)
    words = (sys.executable, "-m", "nri_resmgr", "install", name)
    command: tuple[str | Path, ...] = (*words, *flags)
    subprocess.run(command, check=True, capture_output=True, text=True)


def keep_apart(launcher: Path, folder: Path) -> None:
    """Have a launcher's plugin keep its files in a folder of the test's.

    containerd hands over no variables. The default folders belong to this machine, and
    another test's daemon would remove the folders of containers that it does not know.
    """
    own = {
        "NRI_RESMGR_STATE_DIR": str(folder / "policy"),
        "NRI_RESMGR_RUN_DIR": str(folder / "run-of-policy"),
        "NRI_RESMGR_CONTROL_SOCKET": "",
    }
    variables = f"import os, sys\nos.environ.update({own!r})\n"
    launcher.write_text(launcher.read_text().replace("import sys\n", variables, 1))


def start(daemon: Containerd, name: str, resources: Resources) -> Container:
    return daemon.run_pod(PodSpec(name, qos=resources.qos)).start(name, resources)


def cpus_of(container: Container) -> CpuSet:
    return CpuSet.parse(container.cpus())


@pytest.fixture(scope="module")
def shared_launching(
    programs: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Containerd]:
    """One daemon with all plugins installed; ask for `launching` instead."""
    daemon = Containerd(programs, tmp_path_factory.mktemp("ld"))
    daemon.layout.create()
    with ExitStack() as stack:
        stack.callback(daemon.close)
        install_shipped(daemon.layout)
        daemon.start()
        yield daemon


@pytest.fixture
def launching(shared_launching: Containerd) -> Iterator[Containerd]:
    """A running containerd that has launched the plugins, without pods."""
    yield shared_launching
    if not shared_launching.is_up():
        shared_launching.start()
    shared_launching.remove_pods()


def test_an_installed_plugin_is_launched_and_pins(launching: Containerd) -> None:
    shared = start(launching, "shared", Resources.best_effort())
    exclusive = start(launching, "exclusive", Resources.guaranteed(MANY))
    own, during = cpus_of(exclusive), cpus_of(shared)
    exclusive.stop()

    assert (len(own), during) == (MANY, ALL - own)
    assert cpus_of(shared) == ALL


def test_all_shipped_plugins_are_launched_side_by_side(launching: Containerd) -> None:
    greeted = start(launching, "greeted", Resources.best_effort())

    assert "GREETING=ahoy default/greeted" in greeted.exec("env").splitlines()
    wait_until(
        lambda: printed_creations(launching.layout) == ["runtime", "plugin"],
        "the logger to print the creation, both ways",
    )
    assert set(plugin_pids(launching.layout)) == {
        "80-differ",
        "81-device-injector",
        "82-hook-injector",
        "83-memory-policy",
        "84-memory-qos",
        "85-network-device-injector",
        "86-network-logger",
        "87-rdt",
        "88-sgx-epc",
        "89-ulimit-adjuster",
        "90-writable-cgroups",
        "91-logger",
        "92-resource-policy",
        "93-template",
    }


def test_a_killed_containerd_launches_a_new_one_and_the_old_one_ends(
    launching: Containerd,
) -> None:
    first = plugin_pids(launching.layout)[POLICY]
    exclusive = start(launching, "exclusive", Resources.guaranteed(MANY))
    own = cpus_of(exclusive)
    launching.kill()
    wait_until(lambda: not Path(f"/proc/{first}").exists(), "the plugin to end")
    launching.start()
    shared = start(launching, "shared", Resources.best_effort())

    assert cpus_of(exclusive) == own
    assert plugin_pids(launching.layout)[POLICY] != first
    # containerd 1.7 before 1.7.26 (NRI 0.6) never sends a plugin that it launches
    # what runs already; docs/limits.md says so.
    assert cpus_of(shared) == (ALL if launching.release < (2, 0) else ALL - own)


def test_a_plugin_that_is_too_late_loses_the_container_and_comes_back(
    containerd: Containerd, tmp_path: Path
) -> None:
    script = tmp_path / "late.py"
    script.write_text(LATE_PLUGIN)
    seconds = patience(Options().request_timeout * 1.5)
    arguments = (str(script), str(containerd.layout.nri_socket), str(seconds))
    with PluginProcess(arguments, tmp_path / "log") as plugin:
        slow = start(containerd, "slow", Resources.best_effort())
        plugin.wait_for("session.synchronized", 2)
        quick = start(containerd, "quick", Resources.best_effort())

        touched = [
            "TOUCHED=yes" in container.exec("env").splitlines()
            for container in (slow, quick)
        ]
        assert touched == [False, True]


def test_a_handler_that_waits_too_long_is_answered_for_in_time(
    containerd: Containerd, tmp_path: Path
) -> None:
    script = tmp_path / "patient.py"
    script.write_text(PATIENT_PLUGIN)
    arguments = (str(script), str(containerd.layout.nri_socket))
    with PluginProcess(arguments, tmp_path / "log") as plugin:
        container = start(containerd, "any", Resources.best_effort())

        assert "TOUCHED=safely" in container.exec("env").splitlines()
        assert len(plugin.events("handler.overran")) == 1
        assert len(plugin.events("session.registered")) == 1


def plugin_pids(layout: Layout) -> dict[str, int]:
    """Processes that run a launcher of the plugin folder, by its name."""
    pids = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            for word in path.read_bytes().split(b"\0"):
                program = Path(os.fsdecode(word))
                if program.parent == layout.plugins:
                    assert program.name not in pids
                    pids[program.name] = int(path.parent.name)
    return pids


def printed_creations(layout: Layout) -> list[str]:
    """Return the senders of a creation's messages, as the logger printed them."""
    lines = printed_file(layout).read_text().splitlines()
    messages = [json.loads(line) for line in lines]
    creations = ({"request": "CreateContainer"}, {"reply": "CreateContainer"})
    return [
        message["from"]
        for message in messages
        if any(kind.items() <= message.items() for kind in creations)
    ]
