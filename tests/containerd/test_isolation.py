"""Isolated containers on a real containerd, as their cgroups have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.real_host.containerd import Containerd
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import PodSpec
from tests.real_host.resources import Resources

pytestmark = pytest.mark.containerd

POLICY: Final = """
apiVersion: config.nri/v1alpha1
kind: TopologyAwarePolicy
spec:
  isolationAnnotations: true
"""
IS_V2: Final = Path("/sys/fs/cgroup/cgroup.controllers").exists()
FILE: Final = "cpu.max" if IS_V2 else "cpu.cfs_quota_us"
LIMITED: Final = "100000 100000" if IS_V2 else "100000"
UNLIMITED: Final = "max 100000" if IS_V2 else "-1"


@pytest.fixture(autouse=True)
def plugin(containerd: Containerd, tmp_path: Path) -> Iterator[PluginProcess]:
    socket, log = containerd.layout.nri_socket, tmp_path / "log"
    with PluginProcess.resource_policy(socket, log, document=POLICY) as process:
        yield process


def test_a_disabled_quota_stays_disabled_after_a_resize(
    containerd: Containerd,
) -> None:
    with containerd.run_pod(PodSpec("plain")) as pod:
        limited = pod.start("web", Resources.guaranteed(1)).cgroup.read(FILE)
    spec = PodSpec("quick", annotations={"cpu-quota.crio.io/web": "disable"})
    with containerd.run_pod(spec) as pod:
        web = pod.start("web", Resources.guaranteed(1))
        created = web.cgroup.read(FILE)
        web.update(Resources.guaranteed(1))

        assert limited == LIMITED
        assert [created, web.cgroup.read(FILE)] == [UNLIMITED, UNLIMITED]
