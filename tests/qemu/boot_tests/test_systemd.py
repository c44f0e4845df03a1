"""A day in the life of a node: each test goes on where the one before has ended."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.daemon.defaults import DEFAULT_STATE_DIR
from nri_resmgr.values import CpuSet
from tests.qemu.boot_tests.node import (
    PROGRAM,
    UNIT,
    Node,
    Service,
    pid_in_sync,
    reported,
    run,
    show,
    state,
)
from tests.real_host.cri import CriClient
from tests.real_host.mounts import modes_of, modes_of_cgroups
from tests.real_host.patience import wait_until
from tests.real_host.resources import Resources

RUNTIME: Final = "containerd.service"
CONFIG: Final = Path("/etc/containerd/config.toml")
STOCK: Final = CONFIG.with_suffix(".stock")
# An emulated CPU takes longer than a runtime waits by default.
TIMES: Final = ("--registration-timeout", "60s", "--request-timeout", "30s")
STATE: Final = Path(DEFAULT_STATE_DIR)
WATCHDOG: Final = Path("/run/systemd/system", f"{UNIT}.d", "watchdog.conf")


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with CriClient(Path("/run/containerd/containerd.sock")) as cri:
        yield Node(cri)


def wait_for_restart(before: Service) -> Service:
    """Wait until systemd has started the daemon by itself, and it is in sync."""
    # To ask systemd takes the CPU away from what is waited for.
    wait_until(lambda: pid_in_sync() not in {None, before.pid}, "another daemon")
    wait_until(lambda: Service.now().state == "active", "the service to be active")
    now = Service.now()
    assert now == Service("active", now.pid, before.restarts + 1)
    assert now.pid == pid_in_sync()
    return now


def accepts_plugins() -> bool:
    with socket.socket(socket.AF_UNIX) as plugin:
        return plugin.connect_ex("/var/run/nri/nri.sock") == 0


def allowed_cpus(unit: str) -> str:
    """CPUs that systemd has for a unit."""
    (text,) = show(unit, "AllowedCPUs")
    return str(CpuSet.parse(text.replace(" ", ",")))


def test_the_daemon_starts_at_boot_after_the_runtime() -> None:
    (is_up,) = map(int, show(RUNTIME, "ActiveEnterTimestampMonotonic"))
    (begins,) = map(int, show(UNIT, "ExecMainStartTimestampMonotonic"))

    assert show(RUNTIME, "ActiveState") == ("active",)
    assert show(UNIT, "ActiveState", "NRestarts") == ("active", "0")
    assert show(UNIT, "WatchdogUSec") == ("30s",)
    assert 0 < is_up <= begins
    assert run("systemctl", "--failed", "--quiet", "--plain", "--no-legend") == ""


def test_the_daemon_may_write_cgroups_and_nothing_else_of_the_kernel() -> None:
    mounts = Path("/proc", str(Service.now().pid), "mounts").read_text()

    assert modes_of(mounts)["/sys"] == "ro"
    assert modes_of(mounts)["/proc/sys"] == "ro"
    assert modes_of_cgroups(mounts) == {"rw"}


def test_a_container_has_the_cpus_that_the_daemon_reports(
    node: Node, tmp_path: Path
) -> None:
    node.fill(tmp_path)
    node.start("db", Resources.guaranteed(1))
    node.start("web", Resources.best_effort())
    cpus = reported()

    assert cpus == node.seen()
    assert len(CpuSet.parse(cpus["db"])) == 1


def test_a_daemon_that_is_killed_or_hangs_is_restarted(node: Node) -> None:
    first, cpus = Service.now(), reported()
    WATCHDOG.parent.mkdir(parents=True)
    WATCHDOG.write_text("[Service]\nWatchdogSec=10\n")
    run("systemctl", "daemon-reload")
    os.kill(first.pid, signal.SIGKILL)
    second = wait_for_restart(first)

    assert reported() == node.seen() == cpus

    os.kill(second.pid, signal.SIGSTOP)
    wait_for_restart(second)
    WATCHDOG.unlink()
    run("systemctl", "daemon-reload")

    assert reported() == node.seen() == cpus


def test_the_daemon_outlives_a_runtime_without_nri(node: Node) -> None:
    before, cpus = Service.now(), reported()
    shutil.copy(STOCK, CONFIG)
    run("systemctl", "restart", RUNTIME)

    assert not accepts_plugins()
    assert Service.now() == before
    assert node.seen() == cpus
    assert state()["session"]["state"] == "disconnected"


def test_the_daemon_reconnects_once_nri_is_switched_on(node: Node) -> None:
    before, cpus = Service.now(), node.seen()
    run(PROGRAM, "enable-runtime", "--restart", *TIMES)
    wait_until(lambda: pid_in_sync() == before.pid, "the daemon to be in sync")

    assert Service.now() == before
    assert reported() == node.seen() == cpus

    node.start("late", Resources.guaranteed(1))
    assert reported() == node.seen()
    assert len(CpuSet.parse(reported()["late"])) == 1
    assert reported()["late"] != reported()["db"]


def test_a_reload_of_systemd_does_not_change_containers(node: Node) -> None:
    """The runtime gave systemd more CPUs for "web" than "late" has left it."""
    cpus, scope = reported(), node.scope("web")
    wait_until(lambda: allowed_cpus(scope.name) == cpus["web"], "its unit to follow")
    options = ("--quiet", f"--slice={scope.parent.name}")
    witness = ("--unit=witness", "--property=AllowedCPUs=0-1")
    run("systemd-run", *options, *witness, "sleep", "infinity")
    file = scope.with_name("witness.service") / "cpuset.cpus"
    file.write_text("0")
    run("systemctl", "daemon-reload")
    # systemd 257 writes its values to a cgroup when a unit beside it starts, such as
    # another container of the pod.
    run("systemd-run", *options, "true")
    wait_until(lambda: file.read_text() == "0-1\n", "systemd to write its CPUs")

    assert allowed_cpus(scope.name) == cpus["web"]
    # In crun's cgroup below it the old CPUs would not show.
    assert (scope / "cpuset.cpus").read_text() == f"{cpus['web']}\n"
    assert node.seen() == reported() == cpus


def test_uninstalling_restores_the_node(node: Node) -> None:
    cpus = reported()
    run("systemctl", "disable", "--now", UNIT)

    ended = ("inactive", "success", "disabled")
    assert show(UNIT, "ActiveState", "Result", "UnitFileState") == ended
    assert node.seen() == cpus
    # The next start would begin where this one ended.
    files = sorted(path.name for path in STATE.iterdir())
    assert files == ["lock", "policy.checkpoint"]

    run(PROGRAM, "enable-runtime", "--undo", "--restart")
    Path("/etc/systemd/system", UNIT).unlink()
    run("systemctl", "daemon-reload")
    node.start("unpinned", Resources.best_effort())

    assert CONFIG.read_bytes() == STOCK.read_bytes()
    assert not accepts_plugins()
    assert show(UNIT, "LoadState") == ("not-found",)
    assert node.seen() == cpus | {"unpinned": "0-3"}
