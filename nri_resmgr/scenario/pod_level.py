"""The resources of a pod itself: what the API server and the kubelet make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.values import Bytes, MilliCpus


class PodContainers(msgspec.Struct, frozen=True):
    """The containers of a pod.

    Attributes:
        first: The init containers in order, each with whether it is a sidecar.
        others: The containers that run after these.
    """

    first: Sequence[tuple[ContainerRow, bool]]
    others: Sequence[ContainerRow]

    @property
    def request(self) -> MilliCpus | None:
        """The most CPU that they request at a time; None without requests."""
        found = self._most(lambda row: row.request)
        return None if found is None else MilliCpus(found)

    @property
    def memory(self) -> Bytes | None:
        """The most memory that they request at a time; None without requests."""
        found = self._most(lambda row: row.memory)
        return None if found is None else Bytes(found)

    def _most(self, amount: Callable[[ContainerRow], int | None]) -> int | None:
        rows = (*(row for row, _ in self.first), *self.others)
        if all(amount(row) is None for row in rows):
            return None
        beside = highest = 0
        for row, is_sidecar in self.first:
            needed = beside + (amount(row) or 0)
            highest = max(highest, needed)
            beside = needed if is_sidecar else beside
        return max(highest, beside + _sum(amount(row) for row in self.others))


def completed(own: ContainerRow, containers: PodContainers) -> ContainerRow:
    """Return the amounts of a pod with the requests that the API server adds.

    Where there are limits, requests are by default those of the containers, and
    without any of these the limits.

    Source:
        Kubernetes, defaultPodRequests (pkg/apis/core/v1/defaults.go).
    """
    if not (own.limit or own.memory_limit or own.hugepages):
        return own
    cpus = (own.request, containers.request, own.limit)
    sizes = (own.memory, containers.memory, own.memory_limit)
    return msgspec.structs.replace(
        own,
        request=next((one for one in cpus if one is not None), None),
        memory=next((one for one in sizes if one is not None), None),
    )


def inheriting(
    row: ContainerRow, own: ContainerRow, containers: PodContainers
) -> ContainerRow:
    """Return a container with what the kubelet adds of the amounts of its pod.

    Source:
        Kubernetes, getCPULimit and calculateLinuxResources (pkg/kubelet/kuberuntime),
        and GetContainerOOMScoreAdjust (pkg/kubelet/qos).
    """
    # A container without limits gets those of the pod, and one without a CPU request
    # its limit.
    limit = row.limit or own.limit
    count = len(containers.first) + len(containers.others)
    unrequested = (own.memory or 0) - (containers.memory or 0)
    return msgspec.structs.replace(
        row,
        request=limit if row.request is None else row.request,
        limit=limit,
        memory_limit=row.memory_limit or own.memory_limit,
        of_pod=own,
        pod_memory=Bytes(max(unrequested, 0) // count),
    )


def _sum(amounts: Iterable[int | None]) -> int:
    return sum(amount or 0 for amount in amounts)
