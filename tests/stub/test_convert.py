"""Conversion: presence, unknown numbers, and errors that name the field."""

from __future__ import annotations

import pytest
from msgspec import Struct

from nri_proto import nri_pb2
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.convert import from_message, to_message
from nri_resmgr.stub.errors import BadField
from nri_resmgr.stub.identity import Identity
from nri_resmgr.stub.model import (
    Container,
    HugepageLimit,
    KeyValue,
    LinuxContainer,
    LinuxContainerAdjustment,
    LinuxMemory,
    LinuxResources,
    Mount,
    NetDevice,
    Pod,
    Rdt,
)


def test_a_wrapper_with_zero_is_present() -> None:
    message = nri_pb2.LinuxMemory(limit=nri_pb2.OptionalInt64(value=0))

    assert from_message(message) == LinuxMemory(limit=0)
    assert to_message(LinuxMemory(limit=0)) == message
    assert not to_message(LinuxMemory()).HasField("limit")


def test_an_empty_list_in_a_wrapper_is_present() -> None:
    message = nri_pb2.LinuxRdt(schemata=nri_pb2.OptionalRepeatedString())

    assert from_message(message) == Rdt(schemata=())
    assert to_message(Rdt(schemata=())) == message


def test_an_empty_part_is_not_an_absent_part() -> None:
    message = nri_pb2.Container(linux=nri_pb2.LinuxContainer())

    assert from_message(message) == Container(linux=LinuxContainer())
    assert from_message(nri_pb2.Container()) == Container(linux=None)


def test_a_state_of_the_future_is_kept_as_its_number() -> None:
    message = nri_pb2.Container()
    message.MergeFromString(b"\x20\x63")  # field 4, 99

    assert from_message(message).state == 99
    assert to_message(from_message(message)) == message


def test_fields_of_the_future_are_dropped() -> None:
    message = nri_pb2.PodSandbox.FromString(b"\x0a\x01p\xfa\x3e\x01x")  # 1 and 1007

    assert from_message(message) == Pod(id="p")


@pytest.mark.parametrize(
    "container",
    [
        pytest.param(from_message(nri_pb2.Container()), id="read from a message"),
        pytest.param(Container(), id="made by its class"),
    ],
)
def test_a_misspelt_field_is_an_error(container: Container) -> None:
    with pytest.raises(AttributeError, match="labls"):
        getattr(container, "labls")  # noqa: B009 - mypy would not have it written out


def test_a_field_that_was_read_cannot_be_set() -> None:
    container = from_message(nri_pb2.Container(name="web"))

    with pytest.raises(AttributeError, match="immutable"):
        container.name = "other"  # type: ignore[misc] # that is the point


def test_requests_have_no_value() -> None:
    with pytest.raises(KeyError, match="CreateContainerRequest"):
        from_message(nri_pb2.CreateContainerRequest())


@pytest.mark.parametrize(
    ("value", "field"),
    [
        pytest.param(Pod(name="\ud800"), "Pod.name", id="text with a surrogate"),
        pytest.param(
            ContainerAdjustment(env=(KeyValue("A", "1"), KeyValue("B", "\ud800"))),
            "ContainerAdjustment.env[1].value",
            id="text with a surrogate in a list",
        ),
        pytest.param(
            LinuxContainer(net_devices={"eth1": NetDevice("\ud800")}),
            "LinuxContainer.net_devices['eth1'].name",
            id="text with a surrogate in a map",
        ),
        pytest.param(
            Pod(labels={"app": "\ud800"}), "Pod.labels", id="a label with a surrogate"
        ),
        pytest.param(
            LinuxResources(hugepage_limits=(HugepageLimit("2MB", -1),)),
            "LinuxResources.hugepage_limits[0].limit",
            id="a negative number where there is no sign",
        ),
        pytest.param(
            LinuxMemory(limit=2**63), "LinuxMemory.limit", id="a number too large"
        ),
        pytest.param(
            LinuxMemory(limit="1Gi"),  # type: ignore[arg-type]  # the bug at test
            "LinuxMemory.limit",
            id="text where a number belongs",
        ),
        pytest.param(
            ContainerAdjustment(
                linux=LinuxContainerAdjustment(
                    resources=Mount()  # type: ignore[arg-type]  # the bug at test
                )
            ),
            "ContainerAdjustment.linux.resources",
            id="a part of another kind",
        ),
        pytest.param(
            Container(hooks=Identity("a", "10")),  # type: ignore[arg-type]
            "Container.hooks",
            id="a struct that is no value of the model",
        ),
        pytest.param(
            Container(args="sh"),  # type: ignore[arg-type]  # the bug at test
            "Container.args",
            id="one string where several belong",
        ),
        pytest.param(
            Container(mounts=[Mount(), Mount(options="ro")]),  # type: ignore[arg-type]
            "Container.mounts[1].options",
            id="one string where several belong, in a list",
        ),
        pytest.param(
            Rdt(schemata="L3:0=f"),  # type: ignore[arg-type]  # the bug at test
            "Rdt.schemata",
            id="one string where there may be several or none",
        ),
        pytest.param(
            LinuxContainer(
                resources={"cpu": {}}  # type: ignore[arg-type]  # the bug at test
            ),
            "LinuxContainer.resources",
            id="a dict where a part belongs",
        ),
    ],
)
def test_an_invalid_value_is_an_error_that_names_the_field(
    value: Struct, field: str
) -> None:
    with pytest.raises(BadField) as caught:
        to_message(value)

    assert caught.value.field == field


def test_lists_are_written_as_tuples_are() -> None:
    listed = Mount("/a", options=["ro"])  # type: ignore[arg-type]  # works all the same

    assert to_message(listed) == to_message(Mount("/a", options=("ro",)))


def test_a_pod_keeps_nothing_of_the_request_that_it_came_with() -> None:
    message = nri_pb2.CreateContainerRequest(pod=nri_pb2.PodSandbox(id="kept"))
    pod = from_message(message.pod)
    message.pod.labels["app"] = "web"

    assert pod == Pod(id="kept")
