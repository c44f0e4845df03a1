"""Claims as the cluster has allocated them, as the agent hands them over.

A JSON list of objects, each of a claim that the kubelet asks for: ``namespace``,
``name``, ``uid``, ``ask`` (the one that it answers), and either ``why`` it cannot be
had, or ``results``: of each device of this driver ``request``, ``pool``, ``device``,
``share`` and ``cpus``, a quantity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from nri_resmgr.policy.claims import Claim, ClaimPart
from nri_resmgr.values import InputError
from nri_resmgr.values.quantities import ONE_CPU, parse_cpus


@dataclass(eq=False)
class BadClaim(InputError):
    """A claim is not one that CPUs can be picked for."""

    title: str
    why: str

    def __str__(self) -> str:
        return f"{self.title}: {self.why}"


class AllocatedDevice(msgspec.Struct, frozen=True):
    """A device that a claim was allocated, of this driver and node.

    Attributes:
        cpus: The consumed capacity, a quantity of Kubernetes; empty without one.
    """

    request: str = ""
    pool: str = ""
    device: str = ""
    share: str = ""
    cpus: str = ""


class AllocatedClaim(msgspec.Struct, frozen=True):
    """A claim of the cluster.

    Attributes:
        ask: The daemon's ask that this answers.
        results: Its devices.
        why: Why it cannot be had; empty where it can.
    """

    namespace: str
    name: str
    uid: str
    ask: str
    results: tuple[AllocatedDevice, ...] = ()
    why: str = ""

    @property
    def title(self) -> str:
        """The claim as users are to read it."""
        return f"claim {self.namespace}/{self.name}"


def read_claims(text: str) -> Mapping[str, AllocatedClaim]:
    """Read the agent's file; return claims by the ask that they answer.

    Raises:
        BadClaim: It is not such a list.
    """
    try:
        found = msgspec.json.decode(text, type=tuple[AllocatedClaim, ...])
    except (ValueError, RecursionError) as error:
        raise BadClaim("the file of claims", str(error)) from None
    return {one.ask: one for one in found}


def claim_of(allocated: AllocatedClaim, token: str) -> Claim:
    """Return what a policy has to grant.

    Raises:
        BadClaim: It has no device of this driver, or not a number of whole CPUs.
    """
    if allocated.why:
        raise BadClaim(allocated.title, allocated.why)
    if not allocated.results:
        raise BadClaim(allocated.title, "it has no device of this driver on this node")
    parts = tuple(
        ClaimPart(
            device=one.device,
            count=_whole(one, allocated.title),
            request=one.request,
            pool=one.pool,
            share=one.share,
        )
        for one in allocated.results
    )
    return Claim(allocated.uid, allocated.namespace, allocated.name, parts, token)


def _whole(device: AllocatedDevice, title: str) -> int:
    try:
        count, rest = divmod(parse_cpus(device.cpus), ONE_CPU)
    except InputError as error:
        raise BadClaim(title, f"the CPUs of {device.device}: {error}") from None
    if not count or rest:
        why = f"{device.cpus} CPUs of {device.device}: expected a whole number of CPUs"
        raise BadClaim(title, why)
    return count
