"""Logs the network namespaces and addresses of pods."""

from __future__ import annotations

from typing import Final

import structlog

from nri_resmgr.stub import (
    Container,
    Pod,
    RemovePodSandboxHandler,
    RunPodSandboxHandler,
    StopPodSandboxHandler,
    SynchronizeHandler,
    serve,
)

log = structlog.get_logger(__name__)

# Runtimes list no network namespace of a pod that has the host's.
HOST_NETWORK: Final = "<host-network>"


def network_of(pod: Pod) -> str:
    """Return the path of a pod's network namespace."""
    namespaces = pod.linux.namespaces if pod.linux is not None else ()
    paths = [one.path for one in namespaces if one.type == "network"]
    return paths[0] if paths else HOST_NETWORK


class NetworkLogger(
    SynchronizeHandler,
    RunPodSandboxHandler,
    StopPodSandboxHandler,
    RemovePodSandboxHandler,
):
    """The plugin; it changes nothing."""

    def synchronize(
        self, pods: tuple[Pod, ...], containers: tuple[Container, ...]
    ) -> None:
        """Log the pods that run already."""
        log.info("pods.known", pods=len(pods), containers=len(containers))
        for pod in pods:
            self._log("pod.runs", pod)

    def run_pod_sandbox(self, pod: Pod) -> None:
        """Log a new pod, whose network is up."""
        self._log("pod.started", pod)

    def stop_pod_sandbox(self, pod: Pod) -> None:
        """Log a pod that was stopped, whose network may be down."""
        self._log("pod.stopped", pod)

    def remove_pod_sandbox(self, pod: Pod) -> None:
        """Log a pod that was removed."""
        self._log("pod.removed", pod)

    def _log(self, event: str, pod: Pod) -> None:
        log.info(
            event,
            pod=f"{pod.namespace}/{pod.name}",
            network=network_of(pod),
            ips=",".join(pod.ips),
        )


if __name__ == "__main__":
    serve(NetworkLogger(), index="10")
