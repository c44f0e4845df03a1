"""What a policy's pools have, and how much of it is granted."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from nri_resmgr.values import NO_CPUS, NO_NODES, Bytes, CpuSet, MilliCpus, NodeSet

_NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})


class PoolUse(msgspec.Struct, frozen=True, kw_only=True):
    """One pool, balloon, or other part of the CPUs at one moment.

    Of the available CPUs in `cpus`, each is in just one of `shared`, `isolated`,
    `exclusive` and `reserved`.

    Attributes:
        kind: What it is: ``balloon`` or ``idle``; ``system``, ``package``, ``die``,
            ``numa`` or ``l3cache``; ``shared``, ``exclusive`` or ``reserved``.
        name: Unlike all others of the policy, the same after a restart.
        cpus: What belongs to it.
        within: The name of what it is a part of; empty for what is on its own.
        shared: CPUs that its containers, or those of its parts, share.
        isolated: CPUs that ``isolcpus=`` names and nobody has.
        exclusive: CPUs that one container has to itself.
        reserved: CPUs for the node's own containers.
        idle: CPUs of nobody that its containers use besides, for now.
        capacity: Thousandths of a CPU that can be granted in it in all.
        granted: Thousandths that are, to its containers and those of its parts.
        free: Thousandths that one more container could be granted at most; for a
            balloon, after it grew.
        mems: Its memory nodes.
        memory: What these hold; 0 where the policy does not count memory.
        memory_granted: What is promised to containers that may be nowhere else.
        containers: Ids of who is in it, and in no part of it.
        labels: What else there is to say, in words of its kind.
    """

    kind: str
    name: str
    cpus: CpuSet
    within: str = ""
    shared: CpuSet = NO_CPUS
    isolated: CpuSet = NO_CPUS
    exclusive: CpuSet = NO_CPUS
    reserved: CpuSet = NO_CPUS
    idle: CpuSet = NO_CPUS
    capacity: MilliCpus = MilliCpus(0)
    granted: MilliCpus = MilliCpus(0)
    free: MilliCpus = MilliCpus(0)
    mems: NodeSet = NO_NODES
    memory: Bytes = Bytes(0)
    memory_granted: Bytes = Bytes(0)
    containers: tuple[str, ...] = ()
    labels: Mapping[str, str] = _NO_LABELS
