"""The readers of other programs' output, on machines that this one is not."""

from __future__ import annotations

import pytest

from nri_resmgr.topology.synthetic import parse_spec
from tests.host.peers import lscpu_groups, model_groups, model_nodes, numactl_nodes

LSCPU = """\
# The following is the parsable format
# CPU,Core,Socket,Node,,L1d,L1i,L2,L3
0,0,0,0,,0,0,0,0
1,1,1,1,,1,1,1,1
2,0,0,0,,0,0,0,0
3,1,1,1,,1,1,1,1
"""
# The same from newer releases of util-linux.
NEWER_LSCPU = """\
# The following is the parsable format
# CPU,Core,Socket,Node,L1d:L1i:L2:L3
0,0,0,0,0:0:0:0
1,1,1,1,1:1:1:1
2,0,0,0,0:0:0:0
3,1,1,1,1:1:1:1
"""

NUMACTL = """\
available: 3 nodes (0-2)
node 0 cpus: 0 2
node 0 size: 1024 MB
node 0 free: 1 MB
node 1 cpus: 1 3
node 1 size: 1024 MB
node 1 free: 1 MB
node 2 cpus:
node 2 size: 2048 MB
node 2 free: 1 MB
node distances:
node   0   1   2
  0:  10  21  24
  1:  21  10  35
  2:  24  35  10
"""

MACHINE = parse_spec("2s1c2t memory=1Gi cxl=2Gi")


@pytest.mark.parametrize("output", [LSCPU, NEWER_LSCPU], ids=["older", "newer"])
def test_lscpu(output: str) -> None:
    assert lscpu_groups(output) == model_groups(MACHINE)


def test_numactl() -> None:
    assert numactl_nodes(NUMACTL) == model_nodes(MACHINE)
