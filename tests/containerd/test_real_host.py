"""The containerd that other tests build on is real and leaves nothing behind."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.real_host.cgroups import Cgroup
from tests.real_host.containerd import Containerd, NotStarted
from tests.real_host.containerd_config import Options
from tests.real_host.cri import CallFailed, CommandFailed
from tests.real_host.leftovers import plugin_pids, shim_pids
from tests.real_host.patience import patience
from tests.real_host.pods import ContainerSpec, PodSpec
from tests.real_host.resources import MIB, QosClass, Resources

pytestmark = pytest.mark.containerd


def machine(file: str) -> str:
    return Path("/sys/devices/system", file).read_text().strip()


def test_containerd_serves_cri_and_listens_for_plugins(containerd: Containerd) -> None:
    major, minor = containerd.release

    assert containerd.cri.version().startswith(f"containerd {major}.{minor}.")
    assert containerd.layout.nri_socket.is_socket()


def test_a_container_reports_the_cpus_and_nodes_it_has(containerd: Containerd) -> None:
    with containerd.run_pod(PodSpec("web")) as pod:
        container = pod.start("main", Resources.guaranteed(1))

        found = container.cpus(), container.mems()

    assert found == (machine("cpu/online"), machine("node/has_memory"))


def test_resources_reach_the_cgroup_at_start_and_by_update(
    containerd: Containerd,
) -> None:
    unified = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    limit = "memory.max" if unified else "memory.limit_in_bytes"
    with containerd.run_pod(PodSpec("web", QosClass.BURSTABLE)) as pod:
        container = pod.start("main", Resources.burstable(1, memory=32 * MIB))
        before = container.cgroup.read(limit)
        container.update(Resources.burstable(1, memory=48 * MIB))
        after = container.cgroup.read(limit)

    assert (before, after) == (str(32 * MIB), str(48 * MIB))


def test_environment_and_command_are_the_specs(containerd: Containerd) -> None:
    spec = ContainerSpec(
        "main",
        Resources.best_effort(),
        command=("sh", "-c", "echo $COLOR >/tmp/color; exec sleep 1000"),
        env={"COLOR": "blue"},
    )
    with containerd.run_pod(PodSpec("web", QosClass.BEST_EFFORT)) as pod:
        container = pod.create(spec)
        created = container.is_running()
        container.start()
        started = container.is_running()
        color = container.exec("sh", "-c", "cat /tmp/color || echo $COLOR")
        container.stop()
        stopped = container.is_running()

    assert (created, started, stopped) == (False, True, False)
    assert color == "blue\n"


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(Containerd.stop, id="stopped"),
        pytest.param(Containerd.kill, id="killed"),
    ],
)
def test_containers_outlive_the_daemon(
    containerd: Containerd, end: Callable[[Containerd], None]
) -> None:
    with containerd.run_pod(PodSpec("web")) as pod:
        container = pod.start("main", Resources.guaranteed(1))
        first = container.exec("cat", "/proc/1/stat")
        end(containerd)
        with pytest.raises(CallFailed, match="UNAVAILABLE"):
            containerd.cri.version()
        containerd.start()

        # Fields 1 to 4 and 22, the start time, identify the process.
        assert container.exec("cat", "/proc/1/stat").split()[21] == first.split()[21]
        assert container.is_running()


def test_failures_inside_and_in_the_runtime_are_distinguished(
    containerd: Containerd,
) -> None:
    with containerd.run_pod(PodSpec("web")) as pod:
        container = pod.start("main", Resources.guaranteed(1))
        with pytest.raises(CommandFailed, match=r"^cat /none: exit 1: .*No such file"):
            container.exec("cat", "/none")
        container.remove()
        with pytest.raises(CallFailed, match="NOT_FOUND"):
            container.exec("true")


def install(containerd: Containerd, name: str, script: str) -> None:
    path = containerd.layout.plugins / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_a_start_that_fails_quotes_the_log(
    new_containerd: Callable[[Options], Containerd],
) -> None:
    containerd = new_containerd(Options())
    # One wrong name, and the runtime refuses to start.
    install(containerd, "no-index", "exit 0")

    with pytest.raises(NotStarted, match="invalid plugin index"):
        containerd.start()


def test_preinstalled_plugins_get_the_options_time_and_die_with_the_daemon(
    new_containerd: Callable[[Options], Containerd],
) -> None:
    containerd = new_containerd(Options(registration_timeout=0.2))
    noted = containerd.layout.folder / "environment"
    # The runtime kills the plugin, not what it started.
    install(containerd, "10-idle", f"env >{noted}; sleep 1000 & wait")
    began = time.monotonic()
    # A plugin that does not register is a warning to 2.x and fatal to 1.7.
    with suppress(NotStarted):
        containerd.start()
    took = time.monotonic() - began
    orphans = list(plugin_pids(containerd.layout))
    containerd.close()

    assert "NRI_PLUGIN_NAME=idle\n" in noted.read_text()
    # The runtime's own limit, 5 s, would have held up the start.
    assert took < patience(5)
    assert len(orphans) == 1
    assert list(plugin_pids(containerd.layout)) == []


def test_nothing_is_left_after_close(
    new_containerd: Callable[[Options], Containerd],
) -> None:
    containerd = new_containerd(Options())
    containerd.start()
    pod = containerd.run_pod(PodSpec("web"))
    pod.start("main", Resources.guaranteed(1))
    shims = list(shim_pids(containerd.layout))
    sockets = set(Path("/run/containerd/s").glob("*"))
    containerd.close()
    folder = str(containerd.layout.folder)

    assert len(shims) == 1
    assert sockets - set(Path("/run/containerd/s").glob("*"))
    assert list(shim_pids(containerd.layout)) == []
    assert list(Cgroup(containerd.cgroup_root).folders()) == []
    assert folder not in Path("/proc/self/mountinfo").read_text()
