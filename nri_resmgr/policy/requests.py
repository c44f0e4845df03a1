"""What a container asks for, reconstructed from the values in its OCI spec."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from nri_resmgr.values import MilliCpus, QosClass

# The kubelet's bounds; 2 stands for any request from none to 2 thousandths.
MIN_SHARES: Final = 2
MAX_SHARES: Final = 262_144

DEFAULT_PERIOD: Final = 100_000  # microseconds, the kubelet's and the kernel's

_SHARES_PER_CPU: Final = 1024
_MILLI: Final = 1000

# Slices repeat their parents' names, and a container's path goes on with ":".
_CGROUP_WORDS: Final = re.compile(r"\.slice\b|[/:-]")
_QOS_WORDS: Final = {
    "burstable": QosClass.BURSTABLE,
    "besteffort": QosClass.BEST_EFFORT,
}


def requested_cpus(shares: int | None, limit: MilliCpus | None = None) -> MilliCpus:
    """Give the CPU request that the kubelet turned into *shares*.

    The kubelet rounds down and every thousandth is more than one share, so that
    the ceiling gives back exactly what it started from, except at its bounds.

    Args:
        shares: ``cpu.shares``; None or 0 is "not told".
        limit: The CPU limit, which tells more where shares end at their maximum.

    Source:
        Kubernetes ``MilliCPUToShares``.

    >>> requested_cpus(2), requested_cpus(102), requested_cpus(2048)
    (0, 100, 2000)
    """
    if not shares or shares <= MIN_SHARES:
        return MilliCpus(0)
    request = MilliCpus(-(-shares * _MILLI // _SHARES_PER_CPU))
    if shares >= MAX_SHARES and limit is not None:
        return max(request, limit)
    return request


def limited_cpus(quota: int | None, period: int | None) -> MilliCpus | None:
    """Give the CPU limit that *quota* in *period* microseconds stands for.

    Returns:
        None without a limit: no quota, or one that is not positive.

    Source:
        Kubernetes ``MilliCPUToQuota``.

    >>> limited_cpus(150000, 100000), limited_cpus(-1, 100000)
    (1500, None)
    """
    if not quota or quota < 0:
        return None
    return MilliCpus(-(-quota * _MILLI // (period or DEFAULT_PERIOD)))


def qos_of_cgroup(path: str) -> QosClass | None:
    """Read a pod's QoS class off its cgroup parent, or off a container's cgroup.

    Args:
        path: As the systemd driver (``kubepods-burstable-pod1.slice``, with or
            without the slices above) or the cgroupfs driver writes it
            (``/kubepods/burstable/pod1``), below any cgroup root.

    Returns:
        None where the kubelet did not make the cgroup.

    >>> qos_of_cgroup("/kubepods.slice/kubepods-pod1.slice").value
    'Guaranteed'
    """
    words = [word for word in _CGROUP_WORDS.split(path) if word]
    following = dict(pairwise(words)).get("kubepods", "")
    if following.startswith("pod"):
        return QosClass.GUARANTEED
    return _QOS_WORDS.get(following)


def qos_of_values(
    request: MilliCpus, limit: MilliCpus | None, memory_limit: int | None
) -> QosClass:
    """Judge by a container's own values, where no kubelet made the pod's cgroup.

    Source:
        Kubernetes, "Pod Quality of Service Classes", for a pod of one container.
    """
    if limit is not None and memory_limit and request == limit:
        return QosClass.GUARANTEED
    if request or limit is not None or memory_limit:
        return QosClass.BURSTABLE
    return QosClass.BEST_EFFORT
