"""The amounts of a container that a node estimates: docs/requests.md has the rules."""

from __future__ import annotations

from typing import Final

import msgspec

from nri_resmgr.policy.events import EXACT_ORIGINS, ContainerSpec
from nri_resmgr.policy.mems.errors import bytes_text
from nri_resmgr.values import Bytes, QosClass

CPU: Final = "cpu"
MEMORY: Final = "memory"

_BUDGET: Final = "an equal part of the amounts of its pod, which it shares with others"
_STEPS: Final = 1000  # of an OOM score, over the memory of the node
_MIB: Final = 1 << 20


class Estimate(msgspec.Struct, frozen=True):
    """An amount that is estimated.

    Attributes:
        amount: ``cpu`` or ``memory``.
        why: How, and how far it may be off.
    """

    amount: str
    why: str


def estimates_of(spec: ContainerSpec, capacity: Bytes) -> tuple[Estimate, ...]:
    """Return the estimated amounts of a container.

    *capacity* is the memory of the node.
    """
    if spec.shares_budget:
        amounts = {CPU: spec.request, MEMORY: spec.memory_request}
        return tuple(
            Estimate(key, _BUDGET) for key, amount in amounts.items() if amount
        )
    is_by_score = spec.qos is QosClass.BURSTABLE and spec.memory_request > 0
    if spec.source in EXACT_ORIGINS or not is_by_score:
        return ()
    step = bytes_text(Bytes(-(-capacity // _STEPS // _MIB) * _MIB))
    why = f"derived from the OOM score, as on a node, and up to {step} too low"
    return (Estimate(MEMORY, why),)
