"""Specs keep labels, but neither the container nor the pod that had them."""

from __future__ import annotations

import sys

import pytest

from nri_proto import nri_pb2
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.stub.convert import from_message
from nri_resmgr.topology.synthetic import parse_spec

LABELS = {"tier": "front", "app": "web"}


@pytest.mark.parametrize(
    "event",
    [
        pytest.param("create", id="that is created"),
        pytest.param("synchronize", id="that is listed with all others"),
        pytest.param("update", id="that is resized"),
    ],
)
def test_a_container_is_released_though_its_labels_are_kept(event: str) -> None:
    policy = ResourcePolicy(parse_spec("1s1n4c1t"))
    pod = from_message(nri_pb2.PodSandbox(id="p", labels=LABELS))
    sent = nri_pb2.Container(id="c", pod_sandbox_id="p", labels=LABELS)
    container = from_message(sent)
    before = sys.getrefcount(container)
    match event:
        case "create":
            policy.create_container(pod, container)
        case "synchronize":
            policy.synchronize([pod], [container])
        case _:
            policy.create_container(pod, from_message(sent))
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
