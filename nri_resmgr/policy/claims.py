"""Claims of CPUs (`ResourceClaim`) that are prepared before there are containers.

A claim's CPUs are its own from its preparation until it is given back. They do not
depend on containers: these come, restart and end while the claim stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from nri_resmgr.values import NO_CPUS, CpuSet, InputError, PolicyError, StoredValue
from nri_resmgr.values.counts import count_text


class ClaimPart(StoredValue, frozen=True):
    """The CPUs that a claim has of one device.

    Attributes:
        device: The name of the device, as in `ClaimDevice`.
        count: Number of CPUs.
        request: The name of the request in the claim that it answers.
        pool: The device's pool in the cluster.
        share: The id of this share of the device; empty if it is not shared.
    """

    device: str
    count: int
    request: str = ""
    pool: str = ""
    share: str = ""


class Claim(StoredValue, frozen=True):
    """A claim that the cluster has allocated to this node.

    Attributes:
        uid: Its UID.
        token: Part of the environment of its containers, and of nothing else.
    """

    uid: str
    namespace: str
    name: str
    parts: tuple[ClaimPart, ...]
    token: str = ""

    @property
    def title(self) -> str:
        """The claim as users are to read it."""
        return f"claim {self.namespace}/{self.name}"

    @property
    def count(self) -> int:
        """Number of CPUs of all devices."""
        return sum(part.count for part in self.parts)


class PreparedClaim(StoredValue, frozen=True):
    """A claim with its CPUs."""

    claim: Claim
    cpus: CpuSet


class ClaimDevice(msgspec.Struct, frozen=True):
    """A part of the node of which claims can have CPUs.

    Attributes:
        name: Stable over restarts.
        node: The number of its NUMA node.
        cpus: All CPUs that claims may have.
        claimed: Those that claims have.
        capacity: Number of CPUs that claims can have together: those that they have,
            and those that one more could get now.
    """

    name: str
    node: int
    cpus: CpuSet
    claimed: CpuSet
    capacity: int


NO_CLAIMS: Final[Mapping[str, PreparedClaim]] = {}


@dataclass(eq=False)
class ClaimsNotOffered(PolicyError):
    """The policy in force prepares no claims."""

    policy: str

    def __str__(self) -> str:
        return (
            f"{self.policy} prepares no claims of CPUs: TopologyAwarePolicy does, with "
            "pinCPU"
        )


@dataclass(eq=False)
class ClaimRefused(PolicyError):
    """The CPUs of a claim are not free.

    Attributes:
        capacity: Number of CPUs of the device that could be granted.
    """

    claim: Claim
    part: ClaimPart
    cpus: CpuSet
    capacity: int
    why: str

    def __str__(self) -> str:
        return (
            f"{self.claim.title} asks for {count_text(self.part.count, 'CPU')} of "
            f"{self.part.device} (CPU {self.cpus}), of which {self.capacity} can be "
            f"granted: {self.why}; containers should request as many CPUs as they "
            "claim, so that the scheduler counts them"
        )


@dataclass(eq=False)
class UnknownDevice(PolicyError):
    """A claim was allocated a device that this node does not have."""

    claim: Claim
    device: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.claim.title} has CPUs of {self.device!r}, which this node does not "
            f"have; it has {', '.join(self.known) or 'none'}"
        )


@dataclass(eq=False)
class ClaimInUse(PolicyError):
    """A claim is to be given back while a container has its CPUs."""

    claim: Claim
    container: str

    def __str__(self) -> str:
        return f"{self.container} still has the CPUs of {self.claim.title}"


@dataclass(eq=False)
class ClaimsLost(InputError):
    """A configuration would take CPUs from prepared claims."""

    titles: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"$.spec: it takes the CPUs of {', '.join(self.titles)}; claims keep their "
            "CPUs until the pods that have them are gone"
        )


def cpus_of(claims: Iterable[PreparedClaim]) -> CpuSet:
    """Return the CPUs of several claims."""
    return CpuSet.union(one.cpus for one in claims) if claims else NO_CPUS


def lost_claims(
    before: Iterable[PreparedClaim],
    after: Mapping[str, PreparedClaim],
    devices: Iterable[ClaimDevice],
    online: CpuSet,
) -> tuple[str, ...]:
    """Return the titles of claims that are gone, or no longer exclusive.

    Args:
        before: The claims until now.
        after: Those of another configuration.
        devices: The devices of that configuration.
        online: The CPUs of the machine.
    """
    allowed = CpuSet.union(one.cpus for one in devices)
    return tuple(
        one.claim.title
        for one in before
        if one.claim.uid not in after or not one.cpus & online <= allowed
    )
