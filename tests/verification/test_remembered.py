"""The cgroup of a container, from its first event to the next process."""

from __future__ import annotations

from pathlib import Path

from nri_resmgr.checkpoint.encode import Draft
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.stub import Container, LinuxPod, Pod
from nri_resmgr.stub.model import ContainerState, LinuxContainer
from tests.app.node import asking_for
from tests.laws.reborn import reborn
from tests.verification.cgroup_trees import SYSTEMD
from tests.verification.fake_host import FakeHost

POD = Pod(id="p1", linux=LinuxPod(cgroup_parent="/kubepods.slice/kubepods-p1.slice"))
LINUX = LinuxContainer(resources=asking_for(1), cgroups_path=SYSTEMD)
RUNNING = Container(
    id="c1",
    name="web",
    pod_sandbox_id="p1",
    state=ContainerState.RUNNING,
    linux=LINUX,
    pid=42,
)


def spec_in(node: FakeHost) -> ContainerSpec:
    return node.policy.state.ledger.entries["c1"].spec


def test_an_event_without_it_changes_nothing(tmp_path: Path) -> None:
    node = FakeHost(tmp_path)
    node.policy.synchronize([POD], [RUNNING])
    found = spec_in(node)
    silent = Container(id="c1", name="web", pod_sandbox_id="p1")
    node.policy.update_container(POD, silent, asking_for(2))

    assert (found.cgroup, found.pid) == (SYSTEMD, 42)
    assert (spec_in(node).cgroup, spec_in(node).pid) == (SYSTEMD, 42)
    assert spec_in(node).request == 2000


def test_the_next_process_finds_it_in_the_state_file(tmp_path: Path) -> None:
    node = FakeHost(tmp_path)
    node.policy.synchronize([POD], [RUNNING])
    state = reborn(node.policy.policy, node.policy.state, Draft())

    assert state.ledger.entries["c1"].spec.cgroup == SYSTEMD
