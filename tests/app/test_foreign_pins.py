"""A kubelet with static managers is known by its requests."""

from __future__ import annotations

import pytest

from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.app.plugin.translate import KUBELET_NAME
from nri_resmgr.host.kubelet import KubeletManager
from nri_resmgr.policies import parse_config
from nri_resmgr.stub.model import (
    Container,
    LinuxContainer,
    LinuxCpu,
    LinuxMemory,
    LinuxResources,
    Pod,
)
from nri_resmgr.topology.synthetic import parse_spec
from tests.app.node import config

POD = Pod(id="p1", name="db", namespace="shop")
GUARANTEED = LinuxResources(
    cpu=LinuxCpu(shares=2048, quota=200_000, period=100_000),
    memory=LinuxMemory(limit=1 << 30),
)
EVIDENCE = "CPUs 2-3 were requested for shop/db/main"


def plugin() -> ResourcePolicy:
    machine = parse_spec("2s1n4c1t")
    return ResourcePolicy(machine, parse_config(config("{}")))


def container(
    resources: LinuxResources | None, name: str = "main", *, of_kubelet: bool = True
) -> Container:
    labels = {KUBELET_NAME: name} if of_kubelet else {}
    linux = LinuxContainer(resources=resources)
    return Container(
        id=f"c-{name}", name=name, pod_sandbox_id="p1", labels=labels, linux=linux
    )


def requesting(cpus: str = "", mems: str = "") -> LinuxResources:
    return LinuxResources(cpu=LinuxCpu(shares=102, cpus=cpus, mems=mems))


def test_cpus_and_nodes_of_a_new_container() -> None:
    some = plugin()
    some.create_container(POD, container(requesting(cpus="2-3", mems="1")))

    assert some.foreign_pins.managers == (
        KubeletManager("cpu", "", EVIDENCE),
        KubeletManager("memory", "", "memory nodes 1 were requested for shop/db/main"),
    )


def test_the_loop_of_a_manager_that_updates_running_containers() -> None:
    some = plugin()
    created = container(requesting())
    some.create_container(POD, created)
    assert not some.foreign_pins.changed.is_set()

    some.update_container(POD, created, requesting(cpus="2-3"))
    assert some.foreign_pins.managers == (KubeletManager("cpu", "", EVIDENCE),)


def test_containers_of_other_clients_of_the_runtime_show_nothing() -> None:
    some = plugin()
    some.create_container(POD, container(requesting(cpus="2-3"), of_kubelet=False))

    assert some.foreign_pins.managers == ()


@pytest.mark.parametrize(
    ("resources", "remain"),
    [
        pytest.param(GUARANTEED, 0, id="a Guaranteed one would have both"),
        pytest.param(requesting(), 1, id="others have no nodes in any case"),
    ],
)
def test_a_kubelet_that_no_longer_pins_is_not_reported(
    resources: LinuxResources, remain: int
) -> None:
    some = plugin()
    some.create_container(POD, container(requesting(mems="1")))
    some.create_container(POD, container(resources, name="next"))

    assert len(some.foreign_pins.managers) == remain


def test_the_sentence_names_the_request_and_both_remedies() -> None:
    assert str(KubeletManager("cpu", "", EVIDENCE)) == (
        "the kubelet has a static cpu manager, or another NRI plugin pins containers "
        f"before this one ({EVIDENCE}): they and this daemon will overwrite each "
        "other's pinning; set cpuManagerPolicy to none, or remove that plugin"
    )
