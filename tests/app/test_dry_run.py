"""With ``--dry-run`` all is decided and reported, and the node stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nri_resmgr.app.observers.observer import DecisionObserver, Subject
from nri_resmgr.app.plugin.changes.reconfiguration import change_machine, reconfigure
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import Event
from nri_resmgr.stub.model import Container, LinuxContainer, LinuxPod, Pod
from nri_resmgr.testing import Runtime, running_plugin
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import ResmgrError
from tests.app.node import SAFE, asking_for, config

NAME = "90-resource-policy"


class Seen(DecisionObserver):
    """What was decided and refused."""

    def __init__(self) -> None:
        self.cpus: dict[str, str] = {}
        self.refusals: list[str] = []

    def decided(self, _event: Event, decision: Decision[Any]) -> None:
        self.cpus |= {one.container: str(one.cpus) for one in decision.reasons}

    def refused(self, subject: Subject, _error: ResmgrError) -> None:
        self.refusals.append(subject.title)


async def create(runtime: Runtime, name: str, cpus: float) -> None:
    parent = f"/kubepods.slice/kubepods-pod{name}.slice"
    linux = LinuxPod(cgroup_parent=parent)
    await runtime.run_pod(Pod(id=name, name=name, namespace="default", linux=linux))
    asked = LinuxContainer(resources=asking_for(cpus))
    await runtime.create_container(name, Container(id=name, name=name, linux=asked))
    await runtime.start_container(name)


async def test_everything_is_decided_and_nothing_is_adjusted(tmp_path: Path) -> None:
    seen, runs = Seen(), tmp_path / "run"
    plugin = ResourcePolicy(
        parse_spec("1s2n4c1t"),
        parse_config(config("{reservedResources: {cpu: 'cpuset:0'}}")),
        plugin_options=PluginOptions(dry_run=True, run_dir=str(runs)),
        observers=(seen,),
    )
    async with (
        Runtime(tmp_path, SAFE) as runtime,
        running_plugin(runtime, plugin, NAME) as stub,
    ):
        plugin.use_update_sender(stub.updates)
        await create(runtime, "half", 0.5)
        await create(runtime, "two", 2)
        await create(runtime, "huge", 99)
        await runtime.update_container("two", asking_for(98))
        reconfigure(plugin, parse_config(config("{reservedResources: {cpu: 3}}")))
        change_machine(plugin, parse_spec("1s2n4c1t offline=7"))
        await runtime.stop_container("half")

        said = [one.method for one in runtime.records if one.method]
        pinned = [runtime.container(name).cpu.cpus for name in ("two", "huge")]

    assert seen.cpus["two"] not in ("", "0-7")
    assert seen.refusals == ["default/huge/huge", "default/two/two"]
    assert pinned == ["", ""]
    assert "UpdateContainers" not in said
    assert not runs.exists()


@pytest.mark.parametrize("dry_run", [False, True])
def test_nothing_waits_to_be_sent_after_a_dry_change(*, dry_run: bool) -> None:
    plugin = ResourcePolicy(
        parse_spec("1s2n4c1t"),
        parse_config(config("{reservedResources: {cpu: 'cpuset:0'}}")),
        plugin_options=PluginOptions(dry_run=dry_run),
    )
    plugin.synchronize([], [])
    pod = Pod(id="web", name="web", namespace="default")
    linux = LinuxContainer(resources=asking_for(0.5))
    plugin.create_container(
        pod, Container(id="web", name="web", pod_sandbox_id="web", linux=linux)
    )
    before = plugin.wanted("web")

    change_machine(plugin, parse_spec("1s2n4c1t offline=2-3,6-7"))

    assert plugin.wanted("web") != before
    assert plugin.delivery.pending() == (set() if dry_run else {"web"})
