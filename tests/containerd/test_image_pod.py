"""The image, run as the pod of our DaemonSet, on a real containerd."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from nri_resmgr.host.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import CpuSet
from tests.deploy.built_image import built_image
from tests.deploy.kubectl import MANIFESTS, rendered
from tests.deploy.node import DaemonPod, Node
from tests.testbed.binaries import Binaries
from tests.testbed.documents import STATIC
from tests.testbed.patience import wait_until
from tests.testbed.pods import Container, PodSpec
from tests.testbed.resources import Resources

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

MACHINE = read_machine(HostTree("/"))
ALL = MACHINE.online - MACHINE.isolated
OK = 200


@pytest.fixture(scope="module")
def node(
    programs: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Node]:
    with Node(programs, tmp_path_factory.mktemp("node")) as node:
        node.take_image(built_image().archive)
        yield node
        node.containerd.remove_pods()


def base(document: str = "") -> tuple[dict[str, Any], ...]:
    """Render the base; with a document, as an overlay of the user's would."""
    objects = rendered(MANIFESTS / "base")
    if not document:
        return objects
    return tuple(
        one | {"data": {"config.yaml": document}} if one["kind"] == "ConfigMap" else one
        for one in objects
    )


def run(node: Node, objects: tuple[dict[str, Any], ...]) -> DaemonPod:
    """Run the pod until it is ready, as its probes say."""
    pod = node.run(objects)
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        wait_for(pod, name)
    return pod


def wait_for(pod: DaemonPod, name: str) -> None:
    probe = pod.wanted.probes[name]
    wait_until(lambda: pod.ask(probe) == OK, f"the {name} of the pod", 20)


def start(node: Node, name: str, resources: Resources) -> Container:
    pod = node.containerd.run_pod(PodSpec(name, qos=resources.qos))
    return pod.start(name, resources)


def cpus_of(container: Container) -> CpuSet:
    return CpuSet.parse(container.cpus())


def told(pod: DaemonPod) -> dict[str, str]:
    """Ask the daemon, inside its pod, who has which CPUs."""
    answer = json.loads(pod.exec("nri-resmgr", "status", "-o", "json"))
    return {one["name"]: one["cpus"] for one in answer["containers"]}


def test_it_pins_is_upgraded_and_goes(node: Node) -> None:
    many = len(ALL) // 2
    first = run(node, base(STATIC))
    exclusive = start(node, "exclusive", Resources.guaranteed(many))
    shared = start(node, "shared", Resources.best_effort())
    own = cpus_of(exclusive)
    pinned = (len(own), cpus_of(shared), told(first))
    first.remove()
    between = (cpus_of(exclusive), cpus_of(shared))
    second = run(node, base(STATIC))
    upgraded = (cpus_of(exclusive), cpus_of(shared), told(second))

    assert pinned[:2] == (many, ALL - own)
    assert between == (own, ALL - own)
    assert upgraded == (own, ALL - own, pinned[2])
