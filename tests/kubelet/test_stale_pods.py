"""Pods that the kubelet knows in an old form when their containers are created."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nri_resmgr.kubelet._gen import core_pb2 as core
from nri_resmgr.policy.events import RequestOrigin
from nri_resmgr.testing.kubelet.pods import container, pod
from tests.kubelet.node import running_node
from tests.waiting import until

MIB = 1 << 20


def form(cpu: str, memory: str, devices: str, *, is_guaranteed: bool) -> core.Pod:
    asked = {"cpu": cpu, "memory": memory}
    limits = {"vendor.com/gpu": devices} | (asked if is_guaranteed else {})
    return pod("uid-1", container("web", asked, limits), priority=7)


@pytest.mark.parametrize(
    "is_guaranteed",
    [pytest.param(True, id="guaranteed"), pytest.param(False, id="burstable")],
)
async def test_an_old_form_is_put_right_exactly_when_the_new_one_comes(
    tmp_path: Path, *, is_guaranteed: bool
) -> None:
    old = form("2", "1024Mi", "1", is_guaranteed=is_guaranteed)
    new = form("3", "1025Mi", "2", is_guaranteed=is_guaranteed)
    async with running_node(tmp_path) as node:
        node.service.put(old)
        await until(lambda: "1 pod known" in node.pods.details())
        with capture_logs() as logs:
            await node.run(new)
            first, pinned = node.spec(new, "web"), node.pinned(new, "web")
            # What the kubelet says of others changes nothing.
            node.service.put(pod("uid-2", container("web")))
            await until(lambda: "2 pods" in node.pods.details())

        assert node.spec(new, "web") == first
        # Cgroup values have all but a memory request that is no limit, and devices.
        assert first.source is RequestOrigin.STALE_KUBELET
        assert first.request == 3000
        off = abs(first.memory_request - 1025 * MIB)
        assert off <= (0 if is_guaranteed else node.capacity // 1000)
        assert first.extended == {"vendor.com/gpu": 1}
        assert first.priority == 7
        stale = [one for one in logs if one["event"] == "requests.stale"]
        assert [one["title"] for one in stale] == ["default/uid-1/web"]

        node.service.put(new)
        await until(lambda: node.spec(new, "web") != first)

        spec = node.spec(new, "web")
        assert spec.source is RequestOrigin.KUBELET
        assert (spec.request, spec.memory_request) == (3000, 1025 * MIB)
        assert spec.extended == {"vendor.com/gpu": 2}
        assert spec.priority == 7
        assert node.pinned(new, "web") == pinned


async def test_the_next_container_of_a_pod_known_anew_is_exact(tmp_path: Path) -> None:
    def two(memory: str) -> core.Pod:
        asked = {"cpu": "1", "memory": memory}
        return pod("uid-1", container("web", asked), container("log", asked))

    old, new = two("1Gi"), two("3Gi")
    async with running_node(tmp_path) as node:
        node.service.put(old)
        await until(lambda: "1 pod known" in node.pods.details())
        await node.sandbox(new)
        await node.create(new, "web")
        assert node.has(new, "web", source=RequestOrigin.STALE_KUBELET)

        node.service.put(new)
        await until(lambda: node.has(new, "web", source=RequestOrigin.KUBELET))
        await node.create(new, "log")

        assert node.has(new, "log", source=RequestOrigin.KUBELET)
        for name in ("web", "log"):
            assert node.spec(new, name).memory_request == 3072 * MIB
