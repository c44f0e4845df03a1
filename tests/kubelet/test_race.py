"""A thousand pods whose containers come with their sandboxes, and a Pods API that lags.

Each container is placed exactly where the cache knew its pod, else by an estimate that
is put right as soon as the kubelet has the pod. The runtime never waits for it: a
plugin that answers too late is thrown out, which ends the test.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from nri_resmgr.kubelet._gen import core_pb2 as core
from nri_resmgr.policy.events import RequestOrigin
from nri_resmgr.testing.kubelet.pods import container, pod
from tests.kubelet.node import Node, running_node
from tests.waiting import until

PODS = 1000
AT_ONCE = 20
LAG = 0.5  # seconds


def pods(chance: random.Random) -> list[core.Pod]:
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
        for number in range(PODS)
    ]


async def live(node: Node, mine: list[core.Pod], chance: random.Random) -> list[str]:
    """Run pods one after the other; return the first sources of their containers."""
    first = []
    for one in mine:
        lag = chance.choice((0.0, chance.uniform(0.0, LAG)))
        if lag:
            node.service.put_later(one, lag)
        else:
            node.service.put(one)
            await asyncio.sleep(0)
        await node.run(one)
        first.append(str(node.spec(one, "web").source))
    return first


async def test_pods_reported_late_by_the_kubelet_are_corrected(tmp_path: Path) -> None:
    chance = random.Random(20)  # noqa: S311 - repeatable
    async with running_node(tmp_path, "2s2n16c2t") as node:
        all_pods = pods(chance)
        lives = [
            live(node, all_pods[at::AT_ONCE], random.Random(at))  # noqa: S311
            for at in range(AT_ONCE)
        ]
        first = [one for each in await asyncio.gather(*lives) for one in each]

        assert set(first) == {"kubelet", "oci"}
        await until(
            lambda: all(
                node.has(one, "web", source=RequestOrigin.KUBELET) for one in all_pods
            ),
            within=60,
        )
        for one in all_pods:
            asked = one.spec.containers[0].resources.requests
            spec = node.spec(one, "web")
            assert spec.request == int(asked["cpu"].string.removesuffix("m"))
            assert spec.memory_request == int(asked["memory"].string)
            devices = int(asked["vendor.com/gpu"].string)
            assert spec.extended == {"vendor.com/gpu": devices}
