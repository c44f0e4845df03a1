"""A node whose pods ask for memory classes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nri_proto import NriLevel
from nri_resmgr.testing.cri_service import CreateResult
from tests.app.node import SAFE, running_node

MACHINE: Final = "1s2n4c1t memory=8Gi"
SPEC: Final = """
  memoryQos:
    classes:
      - {name: bronze, swapLimitRatio: 0.5}
      - {name: none}
    unifiedAnnotations: [memory.high, memory.swap.max, misc.max]
  memoryPolicy:
    classes:
      - {name: near, policy: {mode: MPOL_BIND, nodes: cpu-nodes,
                              flags: [MPOL_F_STATIC_NODES]}}
      - {name: spread, policy: {mode: MPOL_INTERLEAVE, nodes: all}}
      - {name: far, policy: {mode: MPOL_BIND, nodes: "1"}}
"""
QOS: Final = "class.memory-qos.nri.io"
HIGH: Final = "memory.high.memory-qos.nri.io"
CLASS: Final = "class.memory-policy.nri.io"
POLICY: Final = "policy.memory-policy.nri.io"
EPC: Final = "epc-limit.nri.io"
MISC: Final = "misc-limit.resource-policy.nri.io"
MISC_COUNTED: Final = "sgx_epc 98566144\nsev_es 99\n"


def v2_host(folder: Path) -> Path:
    """Write a kernel that has cgroup v2 and counts two misc resources."""
    top = folder / "host/sys/fs/cgroup"
    top.mkdir(parents=True)
    (top / "cgroup.controllers").write_text("cpuset cpu io memory misc pids\n")
    (top / "misc.capacity").write_text(MISC_COUNTED)
    return folder


def make_v1(folder: Path) -> None:
    top = folder / "host/sys/fs/cgroup"
    (top / "cgroup.controllers").unlink()
    (top / "misc.capacity").unlink()
    (top / "cpuset").mkdir()
    (top / "cpuset/cpuset.cpus").write_text("0-3\n")


async def run(
    folder: Path,
    annotations: Mapping[str, str],
    spec: str = SPEC,
    level: NriLevel = SAFE,
) -> CreateResult:
    """Run the container ``web``: two CPUs, 1 GiB."""
    async with running_node(folder, MACHINE, spec, level) as node:
        return await node.run("web", 2, annotations)


def unified(created: CreateResult) -> Mapping[str, str]:
    return created.adjustment.resources.unified
