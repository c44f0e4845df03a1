"""Pods that name static pools, in scenarios and in manifests of Kubernetes."""

from __future__ import annotations

import pytest

from nri_resmgr.scenario.manifests import read_workload
from nri_resmgr.scenario.node import InProcessNode
from nri_resmgr.scenario.play import Player
from nri_resmgr.scenario.read import document_of
from nri_resmgr.topology.synthetic import parse_spec

POOLS = {
    "pools": [
        {"name": "fast", "exclusive": True, "cpuLists": [{"cpus": "1"}, {"cpus": "2"}]},
        {"name": "infra", "cpuLists": [{"cpus": "3"}]},
    ]
}
SCENARIO = """
story:
  - run: web
    containers:
      - {name: app, env: [{name: STP_POOL, value: fast}]}
      - {name: log, command: [cmk, isolate], args: [--pool=infra, tail]}
      - {name: db}
"""
MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: app
      env:
      - {name: STP_POOL, value: infra}
      - {name: SELF, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
      - {name: STP_POOL, value: fast}
    - {name: log, command: [sh, -c, cmk isolate --pool=infra tail]}
    - {name: db, args: [serve]}
"""


@pytest.mark.parametrize("text", [SCENARIO, MANIFEST])
def test_containers_run_in_the_pools_that_they_name(text: str) -> None:
    document = document_of("StaticPoolsPolicy", POOLS)
    node = InProcessNode(parse_spec("1s1n8c1t"), document)
    Player(node).play(read_workload(text))

    state, policy = node.plugin.state, node.plugin.policy
    names = {key: one.spec.name for key, one in state.ledger.entries.items()}
    pins = {names[key]: str(pin.cpus) for key, pin in policy.pins(state).items()}
    assert pins == {"app": "1", "log": "3", "db": "0,4-7"}
    assert node.notes.refusals == []
