"""Values are frozen, equal by content, and short to write and to read."""

from __future__ import annotations

import attrs
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
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Container().name = "web"  # type: ignore[misc]  # what must not work


def test_a_map_is_a_copy_that_cannot_be_changed() -> None:
    labels = {"app": "web"}
    pod = Pod(labels=labels)
    labels["app"] = "db"

    assert pod.labels == {"app": "web"}
    with pytest.raises(TypeError):
        pod.labels["app"] = "db"  # type: ignore[index]  # what must not work


def test_a_list_becomes_a_tuple() -> None:
    assert Mount(options=["ro"]) == Mount(options=("ro",))


def test_a_bare_string_is_not_a_list_of_letters() -> None:
    with pytest.raises(TypeError, match="expected several strings, got one: 'sh'"):
        Container(args="sh")


def test_values_with_maps_can_be_members_of_a_set() -> None:
    assert len({Pod(labels={"a": "1"}), Pod(labels={"a": "1"}), Pod()}) == 2


def test_values_of_different_kinds_are_different() -> None:
    assert Pod(id="x") != Container(id="x")


def test_absent_differs_from_zero() -> None:
    assert LinuxMemory() != LinuxMemory(limit=0)


def test_the_repr_is_python_and_leaves_out_what_is_empty() -> None:
    container = Container(
        name="web",
        state=ContainerState.RUNNING,
        labels={"app": "web"},
        linux=LinuxContainer(resources=LinuxResources(cpu=LinuxCpu(shares=0))),
    )

    assert repr(container) == (
        "Container(name='web', state=ContainerState.RUNNING, labels={'app': 'web'}, "
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


TOLD = nri_pb2.Mount(destination="/a", source="/b", options=["ro"])
READ = Mount("/a", source="/b", options=("ro",))


@pytest.mark.parametrize(
    "container",
    [
        pytest.param(from_message(nri_pb2.Container(mounts=[TOLD])), id="of a message"),
        pytest.param(Container(mounts=(READ,)), id="called into being"),
    ],
)
def test_mounts_can_be_looked_at_before_they_are_values(container: Container) -> None:
    (mount,) = container.raw_mounts

    assert (mount.destination, mount.source) == ("/a", "/b")
    assert "ro" in mount.options
    assert container.mounts == (READ,)
