"""The cgroup values that an adjustment changes."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from nri_resmgr.app.classes.problems import ClassProblems
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.requests import DEFAULT_PERIOD, quota_of, shares_of
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.update import ContainerUpdate

_Message = TypeVar("_Message", ContainerAdjustment, ContainerUpdate)

UNLIMITED: Final = -1


class Limits(msgspec.Struct, frozen=True):
    """Cgroup values; None for one that is left alone, `UNLIMITED` for no limit.

    Attributes:
        shares: ``cpu.shares``.
        quota: Microseconds in a period of 100 ms.
        memory: Bytes.
    """

    shares: int | None = None
    quota: int | None = None
    memory: int | None = None

    def __bool__(self) -> bool:
        return self != NO_LIMITS

    def since(self, before: Limits) -> Limits:
        """Return the values that differ from *before*."""
        return Limits(
            *(
                None if new == old else new
                for new, old in zip(
                    msgspec.structs.astuple(self),
                    msgspec.structs.astuple(before),
                    strict=True,
                )
            )
        )


NO_LIMITS: Final = Limits()


class LimitHost:
    """State of the limits of containers.

    Attributes:
        applied: The adjusted values that a container has, by its id.
        unsure: Containers that may not have them: the runtime's record does not.
        problems: Failed writes.
    """

    def __init__(self) -> None:
        self.applied: dict[str, Limits] = {}
        self.unsure: set[str] = set()
        self.problems = ClassProblems("limits")

    def note_adjusted(self, spec: ContainerSpec) -> None:
        """Note the limits that an earlier process has set."""
        self.applied.setdefault(spec.id, adjusted_limits(spec))


def adjusted_limits(spec: ContainerSpec) -> Limits:
    """Return the values that the adjustment of a container changes."""
    own = spec.adjusted
    if own is None:
        return NO_LIMITS
    return Limits(
        None if spec.request == own.request else shares_of(spec.request),
        None if spec.limit == own.limit else _quota(spec),
        None if spec.memory_limit == own.memory_limit else _memory(spec),
    )


def wanted_limits(spec: ContainerSpec, applied: Limits) -> Limits:
    """Return the values that a container is to have, given its adjusted ones so far.

    Where its adjustment changes a value no more, that is its own.
    """
    wanted = adjusted_limits(spec)
    own = (shares_of(spec.request), _quota(spec), _memory(spec))
    return Limits(
        *(
            mine if new is None and old is not None else new
            for new, old, mine in zip(
                msgspec.structs.astuple(wanted),
                msgspec.structs.astuple(applied),
                own,
                strict=True,
            )
        )
    )


def with_limits(message: _Message, limits: Limits) -> _Message:
    """Add values to a message; those that it has stay."""
    cpu, memory = message.resources.cpu, message.resources.memory
    if limits.shares is not None and (cpu is None or cpu.shares is None):
        message = message.set_cpu_shares(limits.shares)
    if limits.quota is not None and (cpu is None or cpu.quota is None):
        message = message.set_cpu_quota(limits.quota).set_cpu_period(DEFAULT_PERIOD)
    if limits.memory is not None and (memory is None or memory.limit is None):
        message = message.set_memory_limit(limits.memory)
    return message


def _quota(spec: ContainerSpec) -> int:
    return UNLIMITED if spec.limit is None else quota_of(spec.limit)


def _memory(spec: ContainerSpec) -> int:
    return UNLIMITED if spec.memory_limit is None else spec.memory_limit
