"""Starts on a node that leaves the runtime 30 % of a CPU, without byte code of ours."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import nri_proto
import nri_resmgr
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import CpuSet
from tests.containerd.test_launched import install, plugin_pids
from tests.real_host.cgroups import CpuShare
from tests.real_host.containerd import Containerd, NotStarted
from tests.real_host.containerd_config import Options
from tests.real_host.documents import STATIC
from tests.real_host.patience import TooSlow, wait_until
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import PodSpec
from tests.real_host.resources import Resources
from tests.real_host.runs import own_name

pytestmark = pytest.mark.containerd

INDEX = 90
POLICY = f"{INDEX}-resource-policy"  # its launcher
PERCENT = 30
PATIENCE = 60.0  # seconds: six times what a whole start takes there
# A start takes 2.2 of the 5 s that the runtime allows: where other tests keep all CPUs
# busy as well, this share of a CPU is less, and one may be late.
ATTEMPTS = 3
ALL = read_machine(HostTree("/")).online


@pytest.fixture
def busy() -> Iterator[CpuShare]:
    with CpuShare(own_name("busy"), PERCENT) as share:
        yield share


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with our packages, none of them compiled."""
    for package in (nri_resmgr, nri_proto):
        (folder,) = package.__path__
        without = shutil.ignore_patterns("__pycache__")
        shutil.copytree(folder, tmp_path / "src" / Path(folder).name, ignore=without)
    return tmp_path / "src"


def never_compiled(launcher: Path, source: Path, log: Path) -> None:
    """Have a launcher import what is in *source*, and log where we can read."""
    flags = {
        "NRI_RESMGR_STATE_DIR": str(log.parent / "state"),
        "NRI_RESMGR_RUN_DIR": str(log.parent / "run"),
        "NRI_RESMGR_CONTROL_SOCKET": "",
        "NRI_RESMGR_LOG_TO": str(log),
        "NRI_RESMGR_LOG_FORMAT": "json",
    }
    lines = f"import os\nos.environ.update({flags!r})\nsys.dont_write_bytecode = True\n"
    text = launcher.read_text().replace("import sys\n", f"import sys\n{lines}", 1)
    text = text.replace(
        "exec(code)", f"sys.path.insert(0, {str(source)!r})\nexec(code)"
    )
    launcher.write_text(text)


def events(log: Path, name: str) -> list[dict[str, Any]]:
    lines = log.read_text().splitlines() if log.exists() else []
    found = [json.loads(line) for line in lines]
    return [line for line in found if line["event"] == name]


def _start(daemon: Containerd, busy: CpuShare, log: Path) -> None:
    """Start the runtime until the plugin that it launches is in time."""
    awaited = ["session.registered"]
    if daemon.release >= (2, 0):  # older ones synchronize none that they launch
        awaited.append("session.synchronized")
    for attempt in range(ATTEMPTS):
        before = {name: len(events(log, name)) for name in awaited}
        try:
            daemon.start(within=busy)
            for name in awaited:
                wait_until(
                    partial(_is_one_more, log, name, before[name]),
                    f"another {name} in {log}",
                    PATIENCE / ATTEMPTS,
                )
        except (NotStarted, TooSlow):  # containerd 1.7 ends where a plugin is late
            if attempt + 1 == ATTEMPTS:
                raise
            daemon.stop()
        else:
            return


def _is_one_more(log: Path, name: str, before: int) -> bool:
    return len(events(log, name)) > before


def _wait_for_end(pid: int) -> None:
    what = "the plugin to end"
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), what, PATIENCE)


def start_of(daemon: Containerd, name: str) -> CpuSet:
    pod = daemon.run_pod(PodSpec(name, qos=Resources.guaranteed(1).qos))
    return CpuSet.parse(pod.start(name, Resources.guaranteed(1)).cpus())


def test_a_launched_plugin_is_not_too_late(
    new_containerd: Callable[[Options], Containerd],
    source: Path,
    busy: CpuShare,
    tmp_path: Path,
) -> None:
    daemon = new_containerd(Options())
    log = tmp_path / "policy" / "log"
    log.parent.mkdir()
    daemon.start()  # with all CPUs: images are to be there
    daemon.stop()
    install(daemon.layout, "resource-policy", INDEX, STATIC)
    never_compiled(daemon.layout.plugins / POLICY, source, log)
    # The first start builds for the text of Configure, the second one before it.
    for number in (1, 2):
        _start(daemon, busy, log)
        pid = plugin_pids(daemon.layout)[POLICY]
        if number == 1:
            daemon.stop()
            _wait_for_end(pid)
    busy.lift()

    assert len(start_of(daemon, "exclusive")) == 1
    assert not list(source.rglob("*.pyc"))
    assert len(events(log, "session.registered")) >= 2


def test_an_external_plugin_is_not_too_late(
    new_containerd: Callable[[Options], Containerd],
    source: Path,
    busy: CpuShare,
    tmp_path: Path,
) -> None:
    daemon = new_containerd(Options())
    daemon.start()
    daemon.stop()
    daemon.start(within=busy)
    config = tmp_path / "static.yaml"
    config.write_text(STATIC)
    flags = ("--config-file", str(config), "--control-socket", "")
    where = ("--nri-socket", str(daemon.layout.nri_socket))
    state = ("--state-dir", str(tmp_path / "state"), "--log-format", "json")
    arguments = ("-B", "-m", "nri_resmgr", "run", *where, *state, *flags)
    variables = {"PYTHONPATH": str(source)}
    with PluginProcess(arguments, tmp_path / "log", variables, busy) as plugin:
        busy.lift()

        assert len(start_of(daemon, "exclusive")) == 1
        assert len(plugin.events("session.registered")) == 1
        assert plugin.events("session.failed") == []
        assert not list(source.rglob("*.pyc"))
