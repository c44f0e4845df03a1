"""Exact conversions between Kubernetes requests and cgroup values."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Final

from nri_resmgr.values import Bytes, MilliCpus, QosClass

# The kubelet's bounds; 2 stands for any request up to 2 thousandths.
MIN_SHARES: Final = 2
MAX_SHARES: Final = 262_144

DEFAULT_PERIOD: Final = 100_000  # microseconds, the kubelet's and the kernel's

# The least quota that the kernel accepts, microseconds.
MIN_QUOTA: Final = 1000

# oom_score_adj of Burstable containers. The ends also stand for what is beyond:
# Guaranteed and BestEffort containers have -997 and 1000.
MIN_BURSTABLE_OOM: Final = 3
MAX_BURSTABLE_OOM: Final = 999

_SHARES_PER_CPU: Final = 1024
_MILLI: Final = 1000

# Slices repeat their parents' names, and a container's path goes on with ":".
_CGROUP_WORDS: Final = re.compile(r"\.slice\b|[/:-]")
# No level of a QoS class: what is beside two separators, and a partition (KEP-5894).
_NO_LEVEL: Final = ("", "system")
_QOS_WORDS: Final = {
    "burstable": QosClass.BURSTABLE,
    "besteffort": QosClass.BEST_EFFORT,
}


def requested_cpus(shares: int | None, limit: MilliCpus | None = None) -> MilliCpus:
    """Return the CPU request that the kubelet turned into *shares*; 0 if unknown.

    The kubelet rounds down and every thousandth is more than one share, so that
    the ceiling gives back exactly what it started from, except at its bounds. The
    CPU limit matters where shares are at their maximum.

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
    """Return the CPU limit of a quota in a period, both in microseconds.

    None without a quota, or for one that is not positive.

    Source:
        Kubernetes ``MilliCPUToQuota``.

    >>> limited_cpus(150000, 100000), limited_cpus(-1, 100000)
    (1500, None)
    """
    if not quota or quota < 0:
        return None
    return MilliCpus(-(-quota * _MILLI // (period or DEFAULT_PERIOD)))


@lru_cache(maxsize=1024)  # called for every container whose shared CPUs change
def shares_of(request: MilliCpus) -> int:
    """Return the ``cpu.shares`` that the kubelet makes of a CPU request.

    Source:
        Kubernetes ``MilliCPUToShares``.

    >>> shares_of(MilliCpus(0)), shares_of(MilliCpus(100)), shares_of(MilliCpus(10**6))
    (2, 102, 262144)
    """
    return min(max(request * _SHARES_PER_CPU // _MILLI, MIN_SHARES), MAX_SHARES)


def quota_of(limit: MilliCpus, period: int = DEFAULT_PERIOD) -> int:
    """Return the quota in *period* microseconds that the kubelet makes of a limit.

    Source:
        Kubernetes ``MilliCPUToQuota``.
    """
    return max(limit * period // _MILLI, MIN_QUOTA)


def requested_memory(oom_score_adj: int, capacity: Bytes) -> Bytes:
    """Return the least memory request that the kubelet turns into *oom_score_adj*.

    The real one exceeds it by less than a thousandth of *capacity*, the node's
    ``MemTotal``; for 999 by less than two thousandths, and for 3 it may be anything up
    to *capacity*. 0 for values that containers of Burstable pods do not have.

    Source:
        Kubernetes ``GetContainerOOMScoreAdjust``.

    >>> requested_memory(750, Bytes(4 << 30)) == 1 << 30
    True
    """
    if not MIN_BURSTABLE_OOM <= oom_score_adj < MAX_BURSTABLE_OOM:
        return Bytes(0)
    return Bytes(-(-(_MILLI - oom_score_adj) * capacity // _MILLI))


def oom_score_adj_of(request: Bytes, capacity: Bytes) -> int:
    """Return the oom_score_adj that the kubelet makes of a memory request.

    For containers of Burstable pods.

    Source:
        Kubernetes ``GetContainerOOMScoreAdjust``.
    """
    adjustment = _MILLI - _MILLI * request // capacity
    return min(max(adjustment, MIN_BURSTABLE_OOM), MAX_BURSTABLE_OOM)


@lru_cache(maxsize=256)  # called for each event of a pod's containers
def qos_of_cgroup(path: str) -> QosClass | None:
    """Return a pod's QoS class by its cgroup parent, or by a container's cgroup.

    The path is as the systemd driver (``kubepods-burstable-pod1.slice``, with or
    without the slices above) or the cgroupfs driver writes it, below any cgroup root
    (``/kubepods/burstable/pod1``), also in the kubelet's system partition
    (``/kubepods/system/burstable/pod1``). None if the kubelet did not create it.

    >>> qos_of_cgroup("/kubepods.slice/kubepods-pod1.slice").value
    'Guaranteed'
    """
    words = [one for one in _CGROUP_WORDS.split(path) if one not in _NO_LEVEL]
    following = dict(pairwise(words)).get("kubepods", "")
    if following.startswith("pod"):
        return QosClass.GUARANTEED
    return _QOS_WORDS.get(following)


def qos_of_values(
    request: MilliCpus, limit: MilliCpus | None, memory_limit: int | None
) -> QosClass:
    """Return the QoS class by a container's values, for pods not from a kubelet.

    Source:
        Kubernetes, "Pod Quality of Service Classes", for a pod of one container.
    """
    if limit is not None and memory_limit and request == limit:
        return QosClass.GUARANTEED
    if request or limit is not None or memory_limit:
        return QosClass.BURSTABLE
    return QosClass.BEST_EFFORT
