"""Cgroup trees as the kernel shows them, in a folder, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nri_resmgr.host.tree import HostTree

MOUNT = "sys/fs/cgroup"
POD = "kubepods/burstable/pod1"
SLICES = (
    "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice"
    "/cri-containerd-c1.scope"
)
SYSTEMD = "kubepods-burstable-pod1.slice:cri-containerd:c1"

V1 = {"cpuset/cgroup.procs": "1", "cpuset/cpuset.cpus": "0-7", "cpu/cgroup.procs": "1"}
V2 = {"cgroup.controllers": "cpuset cpu", "cgroup.procs": "1"}


def tree_with(root: Path, files: Mapping[str, str], mount: str = MOUNT) -> HostTree:
    """Write files below the mount, over those that are there."""
    for name, text in files.items():
        path = root / mount / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n" if text else "")
    return HostTree(root)


def v1(
    path: str, cpus: str, mems: str = "0", shares: str = "1024", requested: str = ""
) -> dict[str, str]:
    """A container's files under version 1."""
    return {
        f"cpuset/{path}/cgroup.procs": "42",
        f"cpuset/{path}/cpuset.cpus": requested or cpus,
        f"cpuset/{path}/cpuset.mems": mems,
        f"cpuset/{path}/cpuset.effective_cpus": cpus,
        f"cpuset/{path}/cpuset.effective_mems": mems,
        f"cpu/{path}/cgroup.procs": "42",
        f"cpu/{path}/cpu.shares": shares,
    }


def v2(
    path: str, cpus: str, mems: str = "0", weight: str = "100", requested: str = ""
) -> dict[str, str]:
    """A container's files under version 2."""
    return {
        f"{path}/cgroup.procs": "42",
        f"{path}/cgroup.events": "populated 1\nfrozen 0",
        f"{path}/cpuset.cpus": requested or cpus,
        f"{path}/cpuset.mems": mems,
        f"{path}/cpuset.cpus.effective": cpus,
        f"{path}/cpuset.mems.effective": mems,
        f"{path}/cpu.weight": weight,
    }
