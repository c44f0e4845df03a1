"""Memory policies by the program mpolset on a real containerd, or their refusal."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.deploy.test_mpolset import program
from tests.real_host.binaries import NRI_0_10
from tests.real_host.containerd import Containerd
from tests.real_host.cri import CallFailed
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import PodSpec
from tests.real_host.resources import Resources

pytestmark = pytest.mark.containerd

__all__ = ["program"]

POLICY: Final = """
apiVersion: config.nri/v1alpha1
kind: NonePolicy
spec:
  memoryPolicy: {injectMpolset: true}
"""
WISH: Final = {"policy.memory-policy.nri.io": "{mode: MPOL_BIND, nodes: 0}"}


def test_a_policy_is_set_by_the_program_or_refused_with_advice(
    containerd: Containerd, program: Path, tmp_path: Path
) -> None:
    flags = ("--mpolset", str(program), "--run-dir", str(tmp_path / "run"))
    socket, log = containerd.layout.nri_socket, tmp_path / "log"
    with (
        PluginProcess.resource_policy(socket, log, *flags, document=POLICY),
        containerd.run_pod(PodSpec("web", annotations=WISH)) as pod,
    ):
        if containerd.release < NRI_0_10:
            with pytest.raises(CallFailed) as refused:
                pod.start("web", Resources.guaranteed(0.1))
            found = str(refused.value)
            assert "asks for a memory policy, which NRI 0." in found
            assert "injectMpolset would need NRI 0.10.0" in found
            return
        container = pod.start("web", Resources.guaranteed(0.1))
        process = Path("/proc", str(container.cgroup.processes()[0]))

        maps = (process / "numa_maps").read_text().splitlines()
        assert {one.split()[1] for one in maps} == {"bind:0"}
        # It has become the command of the container.
        assert b"mpolset" not in (process / "cmdline").read_bytes()
