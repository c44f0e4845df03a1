"""Pods that a node runs before the Pods API has them, and the decisions of that."""

from __future__ import annotations

import asyncio
import random
from time import monotonic

import attrs

from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.kubelet._gen import core_pb2 as core
from nri_resmgr.policy.events import ContainerSpec, Created, Event, Updated
from nri_resmgr.testing.kubelet.pods import container, pod
from tests.kubelet.node import Node

AT_ONCE = 20
"""Pods that are created at the same time."""


@attrs.define(eq=False)
class Placements(DecisionObserver):
    """All decisions about one container each, in order.

    Attributes:
        of: The containers, by id.
        at: When, by the monotonic clock, by id.
    """

    of: dict[str, list[ContainerSpec]] = attrs.Factory(dict)
    at: dict[str, list[float]] = attrs.Factory(dict)

    def decided(self, event: Event, decision: PolicyDecision) -> None:  # noqa: ARG002 - what was asked
        match event:
            case Created(spec) | Updated(spec):
                self.of.setdefault(spec.id, []).append(spec)
                self.at.setdefault(spec.id, []).append(monotonic())


def pods(count: int, chance: random.Random) -> list[core.Pod]:
    """Pods whose memory requests, and whose 1m, no cgroup value has."""
    return [
        pod(
            f"uid-{number}",
            container(
                "web",
                {
                    "cpu": chance.choice(("1m", "2m", "10m")),
                    "memory": str(chance.randrange(1, 1 << 20)),
                },
                {"vendor.com/gpu": str(chance.randrange(1, 4))},
            ),
        )
        for number in range(count)
    ]


async def run_late(node: Node, one: core.Pod, lag: float) -> None:
    """Run a pod that becomes known so many seconds later; at once for 0."""
    if lag:
        node.service.put_later(one, lag)
    else:
        node.service.put(one)
        await asyncio.sleep(0)
    await node.run(one)


def knows(node: Node, count: int) -> bool:
    """Return whether the node knows so many pods."""
    return node.pods.details() == f"{count} pods known"
