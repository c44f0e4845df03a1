"""The pods of the kubelet as a source of requests: cache, client and corrections.

Imported once the socket is there: it needs grpclib.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Never

from nri_resmgr.app.plugin.changes.corrected_requests import correct_requests
from nri_resmgr.app.plugin.node_policy import NodePolicy
from nri_resmgr.app.requests.kubelet import KubeletSource
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.kubelet.connection import KubeletConnection
from nri_resmgr.kubelet.pod import KubeletPod
from nri_resmgr.kubelet.pod_cache import PodCache
from nri_resmgr.kubelet.pods import PodsClient
from nri_resmgr.stub.malloc import give_back_memory
from nri_resmgr.stub.service import SETTLING_TIME
from nri_resmgr.values.counts import count_text


class KubeletPods:
    """What the kubelet has said of pods, and what follows from it.

    Args:
        policy: The policy in force, whose containers are corrected.
        connection: To the Pods API.
        is_ready: Returns whether a runtime is synchronized.
    """

    def __init__(
        self,
        policy: NodePolicy,
        connection: KubeletConnection,
        is_ready: Callable[[], bool],
    ) -> None:
        self._policy = policy
        self._is_ready = is_ready
        self._cache = PodCache()
        self._source = KubeletSource(self._cache)
        self._client = PodsClient(connection, self._cache, _tidy_soon)
        self._cache.on_change = self._correct
        policy.specs.use_requests(self._source)

    @property
    def problem(self) -> str:
        """Why pods may be unknown; empty while all are known."""
        return self._client.problem

    def details(self) -> str:
        """Return how much is known."""
        rejected = self._cache.rejected
        known = f"{count_text(len(self._cache), 'pod')} known"
        return f"{known}, {rejected} times one too large" if rejected else known

    async def run(self) -> Never:
        """Follow the kubelet's pods until cancelled."""
        await self._client.run()

    def _correct(self, pod: KubeletPod) -> None:
        # Synchronize reads all containers anyway.
        if self._is_ready():
            correct_requests(self._policy, self._source.sandboxes(pod.uid))


async def follow_pods(daemon: Daemon, connection: KubeletConnection) -> None:
    """Follow the kubelet's pods; what is known is kept if it begins again."""
    services = daemon.kubelet_services
    if services.pods is None:
        sessions = daemon.observers.sessions
        services.pods = KubeletPods(
            daemon.policy, connection, lambda: sessions.is_synchronized
        )
        services.pods_api.details = services.pods.details
    await services.pods.run()


def _tidy_soon() -> None:
    """Return the memory of the list of pods, megabytes, once they are corrected."""
    asyncio.get_running_loop().call_later(SETTLING_TIME, give_back_memory)
