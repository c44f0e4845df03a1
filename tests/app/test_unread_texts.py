"""Labels and annotations are read when somebody looks, or once the reply is out."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

import pytest

from nri_proto import nri_pb2
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.app.plugin.unread_texts import UnreadTexts
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.stub.convert import from_message
from nri_resmgr.topology.synthetic import parse_spec

LABELS = {"tier": "front", "app": "web"}


def counted(texts: Mapping[str, str], counts: Iterator[int]) -> UnreadTexts:
    """Make texts that take a number of *counts* each time they are read."""

    def read() -> Mapping[str, str]:
        next(counts)
        return texts

    return UnreadTexts(read)


def test_texts_are_read_once_and_not_before_somebody_looks() -> None:
    counts = iter(range(1, 10))
    texts = counted(LABELS, counts)

    assert next(counts) == 1
    assert [texts["tier"], texts.get("app"), texts.get("b"), len(texts)] == [
        "front",
        "web",
        None,
        2,
    ]
    assert next(counts) == 3


def test_texts_equal_a_mapping_of_the_same_ones_on_either_side() -> None:
    texts = UnreadTexts(lambda: LABELS)

    assert {"c": texts} == {"c": LABELS}
    assert {"c": dict(LABELS)} == {"c": texts}
    assert texts != {}
    assert repr(texts) == repr(LABELS)


@pytest.mark.parametrize(
    "event",
    [
        pytest.param("create", id="that is created"),
        pytest.param("synchronize", id="that is told of with all others"),
        pytest.param("update", id="that is resized"),
    ],
)
def test_a_container_is_released_though_its_labels_were_not_read(event: str) -> None:
    policy = ResourcePolicy(parse_spec("1s1n4c1t"))
    pod = from_message(nri_pb2.PodSandbox(id="p", labels=LABELS))
    told = nri_pb2.Container(id="c", pod_sandbox_id="p", labels=LABELS)
    container = from_message(told)
    before = sys.getrefcount(container)
    match event:
        case "create":
            policy.create_container(pod, container)
        case "synchronize":
            policy.synchronize([pod], [container])
        case _:
            policy.create_container(pod, from_message(told))
            resources = from_message(nri_pb2.LinuxResources())
            policy.update_container(pod, container, resources)
    entry = policy.state.ledger.entries["c"]

    assert sys.getrefcount(container) == before
    assert entry.spec == ContainerSpec(
        id="c",
        pod="p",
        title="?/?/c",
        labels=LABELS,
        pod_labels=LABELS,
    )
