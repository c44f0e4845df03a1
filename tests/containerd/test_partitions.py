"""Exclusivity by the kernel on a real containerd, and by cpusets where it has none."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.host.cgroups.partitions import why_no_partitions
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import CpuSet
from tests.real_host.containerd import Containerd
from tests.real_host.patience import wait_until
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import Container, PodSpec
from tests.real_host.resources import Resources

pytestmark = pytest.mark.containerd

TOP: Final = Path("/sys/fs/cgroup")
WHY_NOT: Final = why_no_partitions(HostTree("/"))
ONLINE: Final = read_machine(HostTree("/")).online
# One pool: the exclusive CPU is one that the others shared.
FEW: Final = ONLINE.lowest(min(4, len(ONLINE)))
POLICY: Final = f"""
apiVersion: config.nri/v1alpha1
kind: TopologyAwarePolicy
spec:
  exclusivity: partition
  preferIsolatedCPUs: false
  availableResources: {{cpu: "cpuset:{FEW}"}}
  reservedResources: {{cpu: 1}}
"""
EXCLUSIVE: Final = Resources.guaranteed(1)
SHARED: Final = Resources.burstable(0.1)

needs_partitions = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it has them")


@pytest.fixture
def plugin(containerd: Containerd, tmp_path: Path) -> Iterator[PluginProcess]:
    flags = ("--state-dir", str(tmp_path / "state"))
    with PluginProcess.resource_policy(
        containerd.layout.nri_socket, tmp_path / "log", *flags, document=POLICY
    ) as process:
        yield process
    # It is killed, and its partitions stay; other tests use the same CPUs. The lowest
    # cgroups first: Linux 6.12 hides a partition's CPUs for ever once a cgroup above it
    # has lost them.
    files = TOP.glob("nri-resmgr-*/**/cpuset.cpus.exclusive")
    for file in sorted(files, key=lambda file: len(file.parts), reverse=True):
        file.with_name("cpuset.cpus.partition").write_text("member\n")
        file.write_text("\n")


@contextmanager
def cgroup(path: str) -> Iterator[Path]:
    folder = TOP / path
    folder.mkdir()
    try:
        yield folder
    finally:
        folder.rmdir()


@contextmanager
def service() -> Iterator[int]:
    """Run a process in a cgroup of its own, as a service of the host is."""
    with cgroup("some.service") as folder:
        process = subprocess.Popen(["sleep", "1000"])
        try:
            (folder / "cgroup.procs").write_text(str(process.pid))
            yield process.pid
        finally:
            process.kill()
            process.wait()
            subprocess.run(
                ["sh", "-c", f"while grep -q . {folder}/cgroup.procs; do :; done"],
                check=True,
                timeout=60,
            )


def allowed(pid: int) -> CpuSet:
    status = Path(f"/proc/{pid}/status").read_text()
    [row] = (one for one in status.splitlines() if one.startswith("Cpus_allowed_list"))
    return CpuSet.parse(row.split()[1])


def cpus(one: Container) -> CpuSet:
    """Return the CPUs that the first process of a container may run on."""
    return allowed(int(one.cgroup.read("cgroup.procs").split()[0]))


def state(one: Container) -> str:
    return one.cgroup.read("cpuset.cpus.partition")


@needs_partitions
def test_the_kernel_keeps_all_others_off(
    containerd: Containerd, plugin: PluginProcess
) -> None:
    pods = [containerd.run_pod(PodSpec(f"web{n}", qos=SHARED.qos)) for n in range(3)]
    shared = [pod.start("web", SHARED) for pod in pods]
    before = [one.cgroup.read("cpuset.cpus") for one in shared]
    assert {*before} == {str(FEW - FEW.lowest(1))}
    with service() as pid:
        everywhere = allowed(pid)
        pod = containerd.run_pod(PodSpec("db"))
        db = pod.start("db", EXCLUSIVE)
        own = cpus(db)

        assert state(db) == "root"
        assert len(own) == 1
        assert allowed(pid) == everywhere - own
        assert all(cpus(one).isdisjoint(own) for one in shared)
        # Without any write.
        assert [one.cgroup.read("cpuset.cpus") for one in shared] == before
        assert len(plugin.events("partition.in-force")) == 1

        # It outlives the daemon, and the next one takes it over.
        plugin.kill()
        assert state(db) == "root"
        plugin.start()
        assert state(db) == "root"
        assert all(cpus(one).isdisjoint(own) for one in shared)

        db.stop()
        wait_until(lambda: allowed(pid) == everywhere, "the CPUs to be back")
        wait_until(lambda: all(own <= cpus(one) for one in shared), "them to be shared")
        assert [one.cgroup.read("cpuset.cpus") for one in shared] == before
        parent = TOP / Path(db.cgroup.path.lstrip("/")).parts[0]
        handed_down = parent / "cpuset.cpus.exclusive"
        wait_until(lambda: not handed_down.read_text().strip(), "nothing to be left")


@needs_partitions
def test_a_container_of_the_same_pod_leaves_first(
    containerd: Containerd, plugin: PluginProcess
) -> None:
    pod = containerd.run_pod(PodSpec("db"))
    side = pod.start("side", Resources.guaranteed(0.5))
    db = pod.start("db", EXCLUSIVE)

    assert state(db) == "root"
    assert plugin.events("partition.refused") == []
    assert cpus(side).isdisjoint(cpus(db))


@needs_partitions
def test_partitions_that_the_kernel_refuses_or_ends_fall_back_to_cpusets(
    containerd: Containerd, plugin: PluginProcess
) -> None:
    web = containerd.run_pod(PodSpec("web", qos=SHARED.qos)).start("web", SHARED)
    pod = containerd.run_pod(PodSpec("db"))
    db = pod.start("db", EXCLUSIVE)
    own = cpus(db)
    assert state(db) == "root"
    beside = f"{db.cgroup.path.lstrip('/').rpartition('/')[0]}/beside"
    with cgroup(beside) as intruder:
        (intruder / "cpuset.cpus").write_text(str(own | cpus(web)))
        # The kernel notifies the daemon.
        wait_until(lambda: state(db) == "member", "the partition to be ended")
        mine = CpuSet.parse(web.cgroup.read("cpuset.cpus"))
        wait_until(
            lambda: CpuSet.parse(web.cgroup.read("cpuset.cpus")).isdisjoint(own),
            f"the cpuset, {mine}, to be written",
        )
        assert cpus(web).isdisjoint(own)
        assert cpus(db) == own
        plugin.wait_for("partition.refused")
        [refused] = plugin.events("partition.refused")
        assert "Cpu list in cpuset.cpus not exclusive" in refused["why"]


def test_without_partitions_cpusets_do(
    containerd: Containerd, plugin: PluginProcess
) -> None:
    if not WHY_NOT:
        pytest.skip("this host has partitions")
    db = containerd.run_pod(PodSpec("db")).start("db", EXCLUSIVE)

    assert len(CpuSet.parse(db.cpus())) == 1
    [warning] = plugin.events("configuration.warning")
    assert warning["path"] == "$.spec.exclusivity"
    assert WHY_NOT in warning["why"]
    assert not plugin.events("partition.refused")
