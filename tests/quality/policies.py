"""Containers placed by our policies: the real plugin, in this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nri_resmgr.scenario.kubelet import container_of, pod_of
from nri_resmgr.scenario.node import InProcessNode
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS
from tests.quality.life import Arrival
from tests.quality.node import Place

POLICIES: Final = {
    "topology-aware": (
        'kind: TopologyAwarePolicy\nspec: {reservedResources: {cpu: "1"}}'
    ),
    "balloons": (
        "kind: BalloonsPolicy\n"
        'spec: {reservedResources: {cpu: "1"}, balloonTypes: [{name: own, '
        "preferNewBalloons: true, matchExpressions: "
        "[{key: pod/qosclass, operator: Equals, values: [Guaranteed]}]}]}"
    ),
    "static": 'kind: StaticPolicy\nspec: {reservedResources: {cpu: "1"}}',
    "static-plus": 'kind: StaticPlusPolicy\nspec: {reservedResources: {cpu: "1"}}',
}


class PolicyNode:
    """A node with one of our policies.

    Args:
        policy: A key of `POLICIES`.
    """

    def __init__(self, machine: Machine, policy: str) -> None:
        text = f"apiVersion: config.nri/v1alpha1\n{POLICIES[policy]}"
        self._node = InProcessNode(machine, text)
        self._node.plugin.synchronize((), ())
        self._numbers: dict[str, int] = {}

    def create(self, one: Arrival) -> bool:
        """See `Placer.create`."""
        node, pod, name = self._node, f"pod-{one.number}", f"c{one.number}"
        if not node.run_pod(pod_of(pod, one.row)):
            return False
        if not node.create(pod, container_of(name, one.row, node.capacity)):
            node.stop_pod(pod)
            return False
        self._numbers[name] = one.number
        return True

    def stop(self, one: Arrival) -> None:
        """See `Placer.stop`."""
        del self._numbers[f"c{one.number}"]
        self._node.stop_pod(f"pod-{one.number}")

    def places(self) -> Mapping[int, Place]:
        """See `Placer.places`."""
        policy, state = self._node.plugin.policy, self._node.plugin.state
        own = policy.exclusive_parts(state)
        return {
            self._numbers[name]: Place(pin.cpus, own.get(name, NO_CPUS), pin.mems)
            for name, pin in policy.pins(state).items()
        }
