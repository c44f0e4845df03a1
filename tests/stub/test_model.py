"""Values are frozen, equal by content, and short to write and to read."""

from __future__ import annotations

import pytest

from nri_proto import nri_pb2
from nri_resmgr.stub.convert import from_message
from nri_resmgr.stub.model import (
    Container,
    ContainerState,
    LinuxContainer,
    LinuxCpu,
    LinuxMemory,
    LinuxResources,
    Mount,
    Pod,
)


def test_a_value_is_frozen() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        Container().name = "web"  # type: ignore[misc]  # what must not work


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(Pod(), id="none given"),
        pytest.param(from_message(nri_pb2.PodSandbox()), id="none read"),
        pytest.param(from_message(nri_pb2.PodSandbox(labels={"a": "1"})), id="read"),
    ],
)
def test_a_map_cannot_be_changed(pod: Pod) -> None:
    with pytest.raises(TypeError):
        pod.labels["app"] = "db"  # type: ignore[index]  # what must not work


def test_values_without_maps_can_be_members_of_a_set() -> None:
    assert (
        len({Mount("/a", options=("ro",)), Mount("/a", options=("ro",)), Mount()}) == 2
    )


def test_values_with_maps_cannot_be_hashed() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Pod(labels={"a": "1"}))


def test_values_of_different_kinds_are_different() -> None:
    pod: object = Pod(id="x")

    assert pod != Container(id="x")


def test_absent_differs_from_zero() -> None:
    assert LinuxMemory() != LinuxMemory(limit=0)


def test_the_repr_leaves_out_what_is_empty() -> None:
    container = Container(
        name="web",
        state=ContainerState.RUNNING,
        labels={"app": "web"},
        linux=LinuxContainer(resources=LinuxResources(cpu=LinuxCpu(shares=0))),
    )

    assert repr(container) == (
        "Container(name='web', state=<ContainerState.RUNNING: 3>, "
        "labels={'app': 'web'}, "
        "linux=LinuxContainer(resources=LinuxResources(cpu=LinuxCpu(shares=0))))"
    )


def test_resources_of_a_container_without_any_are_all_absent() -> None:
    container = Container(name="web")

    assert (container.resources, container.cpu, container.memory) == (
        LinuxResources(),
        LinuxCpu(),
        LinuxMemory(),
    )


def test_shortcuts_lead_to_the_resources() -> None:
    resources = LinuxResources(cpu=LinuxCpu(shares=2), memory=LinuxMemory(limit=4096))
    container = Container(linux=LinuxContainer(resources=resources))

    assert (container.resources, container.cpu, container.memory) == (
        resources,
        resources.cpu,
        resources.memory,
    )


def test_the_last_of_two_variables_of_one_name_counts() -> None:
    container = Container(env=("A=1", "B=x=y", "A=2", "C"))

    assert container.environment == {"A": "2", "B": "x=y", "C": ""}
