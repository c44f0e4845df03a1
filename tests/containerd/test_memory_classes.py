"""Memory classes of containers on a real containerd, as their cgroups have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.real_host.containerd import Containerd
from tests.real_host.cri import CallFailed
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import PodSpec
from tests.real_host.resources import MIB, Resources

pytestmark = pytest.mark.containerd

POLICY: Final = """
apiVersion: config.nri/v1alpha1
kind: TopologyAwarePolicy
spec:
  memoryQos:
    classes: [{name: bronze, swapLimitRatio: 0.25}]
    unifiedAnnotations: [memory.swap.high]
  memoryPolicy:
    classes: [{name: all, policy: {mode: MPOL_INTERLEAVE, nodes: all}}]
"""
QOS: Final = "class.memory-qos.nri.io"
IS_V2: Final = Path("/sys/fs/cgroup/cgroup.controllers").exists()


@pytest.fixture(autouse=True)
def plugin(containerd: Containerd, tmp_path: Path) -> Iterator[PluginProcess]:
    socket, log = containerd.layout.nri_socket, tmp_path / "log"
    with PluginProcess.resource_policy(socket, log, document=POLICY) as process:
        yield process


@pytest.mark.skipif(not IS_V2, reason="cgroups of version 1 have no such files")
def test_the_limit_is_shared_out_and_follows_a_resize(containerd: Containerd) -> None:
    wishes = {QOS: "bronze", "memory.swap.high.memory-qos.nri.io/web": "1M"}
    with containerd.run_pod(PodSpec("web", annotations=wishes)) as pod:
        container = pod.start("web", Resources.guaranteed(0.1, 64 * MIB))

        files = ("memory.max", "memory.high", "memory.swap.max", "memory.swap.high")
        found = [container.cgroup.read(file) for file in files]
        assert found == [str(64 * MIB), str(48 * MIB), "max", str(MIB)]

        container.update(Resources.guaranteed(0.1, 128 * MIB))
        found = [container.cgroup.read(file) for file in files]
        assert found == [str(128 * MIB), str(96 * MIB), "max", str(MIB)]


@pytest.mark.skipif(IS_V2, reason="cgroups of version 2 have the files")
def test_version_1_cannot_share_out_a_limit(containerd: Containerd) -> None:
    spec = PodSpec("web", annotations={QOS: "bronze"})
    with containerd.run_pod(spec) as pod, pytest.raises(CallFailed) as refused:
        pod.start("web", Resources.guaranteed(0.1))

    assert "which cgroup v1 does not have" in str(refused.value)


def test_settings_that_runtime_or_kernel_lack_are_refused(
    containerd: Containerd,
) -> None:
    # No containerd of Debian's sets policies; no emulated machine has SGX.
    wishes = {
        "class.memory-policy.nri.io/container.near": "all",
        "epc-limit.nri.io/container.safe": "1Mi",
    }
    with containerd.run_pod(PodSpec("web", annotations=wishes)) as pod:
        sentences = []
        for name in ("near", "safe"):
            with pytest.raises(CallFailed) as refused:
                pod.start(name, Resources.guaranteed(0.1))
            sentences.append(str(refused.value))
        other = pod.start("other", Resources.guaranteed(0.1))

        assert other.is_running()
    assert "asks for a memory policy, which NRI 0." in sentences[0]
    assert ("limits sgx_epc in misc.max" in sentences[1]) is IS_V2
