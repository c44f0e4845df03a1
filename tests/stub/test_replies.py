"""What a handler returns becomes a response, or an error that says what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nri_proto import nri_pb2
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.convert import to_message
from nri_resmgr.stub.errors import (
    DuplicateKey,
    InvalidKey,
    MissingContainerId,
    ReplyError,
    SelfUpdate,
)
from nri_resmgr.stub.model import (
    CdiDevice,
    ContainerEviction,
    Device,
    DeviceCgroupRule,
    KeyValue,
    LinuxContainerAdjustment,
    LinuxContainerUpdate,
    LinuxResources,
    Mount,
    Namespace,
    Rlimit,
)
from nri_resmgr.stub.replies import (
    CreateReply,
    UpdateReply,
    create_response,
    stop_response,
    synchronize_response,
    update_response,
)
from nri_resmgr.stub.update import ContainerUpdate

NEW = ContainerAdjustment()
PINNED = NEW.set_cpus("0-1")
C1 = ContainerUpdate("c1")
EVICTION = ContainerEviction("c1", "noisy")

Respond = Callable[[Any], Any]


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        pytest.param(None, nri_pb2.CreateContainerResponse(), id="nothing"),
        pytest.param(
            PINNED,
            nri_pb2.CreateContainerResponse(adjust=to_message(PINNED)),
            id="an adjustment",
        ),
        pytest.param(
            CreateReply(PINNED, (C1.set_cpus("2"),), (EVICTION,)),
            nri_pb2.CreateContainerResponse(
                adjust=to_message(PINNED),
                update=[to_message(C1.set_cpus("2"))],
                evict=[to_message(EVICTION)],
            ),
            id="an adjustment, updates and evictions",
        ),
        pytest.param(
            CreateReply(updates=(C1,)),
            nri_pb2.CreateContainerResponse(update=[to_message(C1)]),
            id="updates alone",
        ),
    ],
)
def test_a_creation_is_answered(result: object, expected: object) -> None:
    assert create_response(result, "new") == expected


@pytest.mark.parametrize(
    ("respond", "response"),
    [
        (update_response, nri_pb2.UpdateContainerResponse),
        (stop_response, nri_pb2.StopContainerResponse),
        (synchronize_response, nri_pb2.SynchronizeResponse),
    ],
)
def test_other_requests_are_answered_by_updates(
    respond: Respond, response: Any
) -> None:
    one, two = C1.set_cpus("2"), ContainerUpdate("c2").set_cpus("3")

    assert respond(None) == response()
    assert respond(one) == response(update=[to_message(one)])
    assert respond(iter([one, two])) == response(
        update=[to_message(one), to_message(two)]
    )


@pytest.mark.parametrize(
    "linux",
    [
        pytest.param(None, id="nothing"),
        pytest.param(LinuxContainerUpdate(), id="an empty part"),
        pytest.param(C1.set_cpus("0-1").set_mems("0").linux, id="a pinning"),
    ],
)
def test_updates_with_one_content_object_are_written_as_any(
    linux: LinuxContainerUpdate | None,
) -> None:
    other = C1.set_cpus("2").linux
    updates = (
        ContainerUpdate("c1", linux),
        ContainerUpdate("c2", other),
        ContainerUpdate("c3", linux, ignore_failure=True),
        ContainerUpdate("c4", linux),
    )

    response = stop_response(updates)

    assert list(response.update) == [to_message(update) for update in updates]


def test_an_update_may_be_of_the_container_itself_and_evict_others() -> None:
    reply = UpdateReply((C1.set_cpus("2"),), (EVICTION,))

    assert update_response(reply) == nri_pb2.UpdateContainerResponse(
        update=[to_message(C1.set_cpus("2"))], evict=[to_message(EVICTION)]
    )


@pytest.mark.parametrize(
    ("respond", "result", "sentence"),
    [
        pytest.param(
            lambda result: create_response(result, "new"),
            {"cpus": "0"},
            "the handler should return None, a ContainerAdjustment or a CreateReply, "
            "not dict",
            id="a dict at creation",
        ),
        pytest.param(
            lambda result: create_response(result, "new"),
            C1,
            "the handler should return None, a ContainerAdjustment or a CreateReply, "
            "not ContainerUpdate",
            id="an update at creation",
        ),
        pytest.param(
            stop_response,
            7,
            "the handler should return None, a ContainerUpdate or several, not int",
            id="a number at a stop",
        ),
        pytest.param(
            update_response,
            [NEW],
            "the handler should return a ContainerUpdate for each update, "
            "not ContainerAdjustment",
            id="an adjustment among the updates",
        ),
    ],
)
def test_a_wrong_type_is_reported_with_the_expected_one(
    respond: Respond, result: object, sentence: str
) -> None:
    with pytest.raises(TypeError) as caught:
        respond(result)

    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        pytest.param(
            CreateReply(updates=(ContainerUpdate().set_cpus("0"),)),
            MissingContainerId("update"),
            id="an update of nothing",
        ),
        pytest.param(
            CreateReply(evictions=(ContainerEviction(),)),
            MissingContainerId("eviction"),
            id="an eviction of nothing",
        ),
        pytest.param(
            CreateReply(updates=(ContainerUpdate("new").set_cpus("0"),)),
            SelfUpdate("new"),
            id="an update of what is being created",
        ),
        pytest.param(
            CreateReply(updates=(C1.set_cpus("0"), C1.set_cpus("0"))),
            DuplicateKey("linux.resources.cpu.cpus of c1"),
            id="one field of one container in two updates",
        ),
        pytest.param(
            CreateReply(updates=(C1.set_unified("k", "1"), C1.set_unified("k", "2"))),
            DuplicateKey("linux.resources.unified of c1", "k"),
            id="one key of one container in two updates",
        ),
        pytest.param(
            CreateReply(
                updates=(
                    ContainerUpdate(
                        "c1", LinuxContainerUpdate(LinuxResources(unified={"": "1"}))
                    ),
                )
            ),
            InvalidKey("linux.resources.unified", ""),
            id="an empty key in an update, by the constructor",
        ),
        pytest.param(
            ContainerAdjustment(env=(KeyValue("A"), KeyValue("A"))),
            DuplicateKey("env", "A"),
            id="a variable twice, by the constructor",
        ),
        pytest.param(
            ContainerAdjustment(mounts=(Mount("-/m"), Mount("-/m"))),
            DuplicateKey("mounts", "-/m"),
            id="a removal twice",
        ),
        pytest.param(
            ContainerAdjustment(rlimits=(Rlimit("X"), Rlimit("X"))),
            DuplicateKey("rlimits", "X"),
            id="a limit twice",
        ),
        pytest.param(
            ContainerAdjustment(cdi_devices=(CdiDevice(),)),
            InvalidKey("cdi_devices", ""),
            id="a device without a name",
        ),
        pytest.param(
            ContainerAdjustment(annotations={"-": ""}),
            InvalidKey("annotations", "-"),
            id="a mark that removes nothing",
        ),
        pytest.param(
            ContainerAdjustment(
                linux=LinuxContainerAdjustment(devices=(Device("/d"), Device("/d")))
            ),
            DuplicateKey("linux.devices", "/d"),
            id="a device twice",
        ),
        pytest.param(
            ContainerAdjustment(
                linux=LinuxContainerAdjustment(
                    namespaces=(Namespace("pid"), Namespace("pid"))
                )
            ),
            DuplicateKey("linux.namespaces", "pid"),
            id="a namespace twice",
        ),
    ],
)
def test_an_inconsistent_reply_is_refused(reply: object, error: ReplyError) -> None:
    with pytest.raises(type(error)) as caught:
        create_response(reply, "new")

    assert str(caught.value) == str(error)


def test_an_update_that_changes_nothing_leaves_the_request_alone() -> None:
    """A runtime would apply it instead of what was requested."""
    empty = ContainerUpdate("c2", LinuxContainerUpdate())

    response = update_response([C1, empty, C1.set_cpus("0")])

    assert list(response.update) == [to_message(C1.set_cpus("0"))]


def test_different_fields_and_keys_of_one_container_go_together() -> None:
    rule = DeviceCgroupRule(allow=True)
    updates = (
        C1.set_cpus("0").set_unified("a", "1").add_device_rule(rule),
        C1.set_mems("0").set_unified("b", "1").add_device_rule(rule),
        ContainerUpdate("c2").set_cpus("0"),
    )

    assert len(stop_response(updates).update) == 3


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (DuplicateKey("env", "A"), "env 'A' is set twice in one reply"),
        (DuplicateKey("args"), "args is set twice in one reply"),
        (InvalidKey("env", ""), "env needs a key that is not empty"),
        (
            InvalidKey("env", "-A"),
            "env key '-A' begins with \"-\", the mark of removal",
        ),
        (MissingContainerId("update"), "update without a container id"),
        (
            SelfUpdate("c1"),
            "update of 'c1' while it is being created: use the adjustment",
        ),
    ],
)
def test_errors_are_sentences(error: ReplyError, sentence: str) -> None:
    assert str(error) == sentence
