"""Pods with resources of their own, in scenarios and in manifests of Kubernetes."""

from __future__ import annotations

import pytest

from nri_resmgr.scenario.manifests import read_workload
from nri_resmgr.scenario.node import InProcessNode
from nri_resmgr.scenario.play import Player
from nri_resmgr.scenario.read import document_of
from nri_resmgr.topology.synthetic import parse_spec

SCENARIO = """
story:
  - run: web
    resources: {limits: {cpu: 4, memory: 4Gi}}
    containers:
      - {name: app}
      - {name: log}
      - {name: db, limits: {cpu: 2, memory: 1Gi}}
"""
MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  resources:
    requests: {cpu: "2", memory: 1Gi}
    limits: {cpu: "4", memory: 1Gi}
  containers:
    - {name: app, image: x}
    - {name: log, image: x, resources: {requests: {cpu: 500m}}}
"""


@pytest.mark.parametrize("kind", ["TopologyAwarePolicy", "StaticPolicy"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            SCENARIO,
            {
                "app": ("Burstable", 1000),
                "log": ("Burstable", 1000),
                "db": ("Guaranteed", 2000),
            },
            id="a Guaranteed pod",
        ),
        pytest.param(
            MANIFEST,
            {"app": ("Burstable", 1500), "log": ("Burstable", 500)},
            id="a Burstable pod of a manifest",
        ),
    ],
)
def test_the_containers_share_what_the_pod_has(
    text: str, expected: dict[str, tuple[str, int]], kind: str
) -> None:
    node = InProcessNode(parse_spec("1s1n8c1t"), document_of(kind))
    Player(node).play(read_workload(text))

    specs = [one.spec for one in node.plugin.state.ledger.entries.values()]
    assert {one.name: (one.qos.value, one.request) for one in specs} == expected
    assert sum(one.request for one in specs) <= 4000
    assert node.notes.refusals == []
