"""A thousand pods whose containers come with their sandboxes, and a Pods API that lags.

The first decision about a container is exact where the cache knew its pod. Elsewhere
it is by an estimate, and one more puts it right as soon as the cache has the pod. The
runtime never waits for it: a plugin that answers too late is thrown out, which ends the
test.
"""

from __future__ import annotations

import asyncio
import random
from functools import partial
from pathlib import Path

from nri_resmgr.kubelet._gen import core_pb2 as core
from nri_resmgr.policy.events import ContainerSpec, RequestOrigin
from tests.kubelet.node import Node, running_node
from tests.kubelet.race import AT_ONCE, Placements, knows, pods, run_late
from tests.waiting import until

PODS = 1000
LAG = 0.5  # seconds
# Known before their sandboxes, as with a real kubelet. The cache has room for few more
# that no runtime has reported.
EARLY = 200


async def make_known(node: Node, early: list[core.Pod]) -> None:
    """Have the cache know pods; a watch with too many events at once would end."""
    for count in range(AT_ONCE, len(early) + 1, AT_ONCE):
        node.service.put(*early[count - AT_ONCE : count])
        await until(partial(knows, node, count))


async def live(
    node: Node, mine: list[core.Pod], early: set[str], chance: random.Random
) -> None:
    """Run pods one after the other; others than *early* ones become known meanwhile."""
    for one in mine:
        if one.metadata.uid in early:
            await node.run(one)
        else:
            lag = chance.choice((0.0, chance.uniform(0.0, LAG)))
            await run_late(node, one, lag)


def check_exact(spec: ContainerSpec, one: core.Pod) -> None:
    asked = one.spec.containers[0].resources.requests
    assert spec.source is RequestOrigin.KUBELET
    assert spec.request == int(asked["cpu"].string.removesuffix("m"))
    assert spec.memory_request == int(asked["memory"].string)
    assert spec.extended == {"vendor.com/gpu": int(asked["vendor.com/gpu"].string)}


def check_estimate(spec: ContainerSpec, one: core.Pod, capacity: int) -> None:
    """Check what docs/requests.md says of cgroup values: 2m at most count as none."""
    asked = one.spec.containers[0].resources.requests
    milli = int(asked["cpu"].string.removesuffix("m"))
    assert spec.source is RequestOrigin.OCI
    assert spec.request == (milli if milli > 2 else 0)
    off = spec.memory_request - int(asked["memory"].string)
    assert abs(off) <= capacity // 1000
    assert spec.extended == {}


async def test_pods_reported_late_by_the_kubelet_are_corrected(tmp_path: Path) -> None:
    chance = random.Random(20)  # noqa: S311 - repeatable
    seen = Placements()
    async with running_node(tmp_path, "2s2n16c2t", observers=(seen,)) as node:
        all_pods = pods(PODS, chance)
        early = all_pods[:: PODS // EARLY]
        await make_known(node, early)
        known = {one.metadata.uid for one in early}
        lives = [
            live(node, all_pods[at::AT_ONCE], known, random.Random(at))  # noqa: S311
            for at in range(AT_ONCE)
        ]
        await asyncio.gather(*lives)
        await until(partial(knows, node, PODS), within=60)
        # Known is corrected: no wait is between the two.
        now = {one.metadata.uid: node.spec(one, "web") for one in all_pods}

    corrected = 0
    for one in all_pods:
        uid = one.metadata.uid
        check_exact(now[uid], one)
        first, *others = seen.of[f"{uid}.web"]
        if first.source is RequestOrigin.KUBELET or uid in known:
            check_exact(first, one)
            assert others == []
        else:
            check_estimate(first, one, node.capacity)
            assert [other.source for other in others] == [RequestOrigin.KUBELET]
            check_exact(others[0], one)
            corrected += 1
    assert 0 < corrected < PODS - EARLY
