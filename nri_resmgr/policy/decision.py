"""Decisions of policies with their reasons, and the protocol of a policy."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

import msgspec

from nri_resmgr.policy.events import NO_PIN, Event, Pin
from nri_resmgr.policy.scheduling import SchedulingClass
from nri_resmgr.topology import MemoryKind
from nri_resmgr.values import NO_CPUS, NO_NODES, CpuSet, NodeSet

StateT = TypeVar("StateT")


class Rule(enum.StrEnum):
    """The rule that led to a container's placement; logged with every decision."""

    # exclusive CPUs
    WHOLE_CPUS = "whole-cpus"
    ISOLATED_CPU = "isolated-cpu"
    MIXED_CPUS = "mixed-cpus"
    OLD_PLACE = "old-place"
    KEPT = "kept"
    GROWN_IN_PLACE = "grown-in-place"
    SHRUNK_IN_PLACE = "shrunk-in-place"
    MOVED = "moved"
    # shared CPUs
    RESERVED_NAMESPACE = "reserved-namespace"
    RESERVED_ASKED = "reserved-asked"
    RESERVED_FULL = "reserved-full"
    NOT_GUARANTEED = "not-guaranteed"
    NOT_WHOLE_CPUS = "not-whole-cpus"
    SHARED_ASKED = "shared-asked"
    FELL_BACK = "fell-back"
    PRESERVED = "preserved"
    # in a balloon
    SAME_GROUP = "same-group"
    SAME_POD = "same-pod"
    SAME_NAMESPACE = "same-namespace"
    EMPTY_BALLOON = "empty-balloon"
    NEW_BALLOON = "new-balloon"
    BALANCED = "balanced"
    INFLATED = "inflated"
    # no placement
    UNCHANGED = "unchanged"
    RELEASED = "released"
    POD_PLACED = "pod-placed"
    COLD_START = "cold-start"
    COLD_START_ENDED = "cold-start-ended"
    UNKNOWN_CONTAINER = "unknown-container"


class Reason(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Explanation of the decision about one container.

    Attributes:
        container: Its id.
        title: ``namespace/pod/container``; empty for an unknown container.
        cpus: Its CPUs; empty when it is gone or not pinned.
        detail: The level that the CPU allocator decided on, or the averted refusal.
        mems: Its memory nodes; empty when it is gone or not pinned.
        pool: The name of its pool, if pools have names.
        decided: The criterion that ranked the pool before the next.
        tried: Better pools that failed, with the sentence that says why.
        source: Origin of the request's amounts.
    """

    rule: Rule
    container: str
    title: str = ""
    cpus: CpuSet = NO_CPUS
    detail: str = ""
    mems: NodeSet = NO_NODES
    pool: str = ""
    decided: str = ""
    tried: tuple[tuple[str, str], ...] = ()
    source: str = ""


class PinUpdate(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A changed pin of an existing container; an empty set means unchanged."""

    container: str
    pin: Pin


class Timer(msgspec.Struct, frozen=True):
    """An event that the policy should receive later.

    Attributes:
        seconds: The delay.
        since: Begin of the delay, UNIX nanoseconds; 0 for now.
    """

    event: Event
    seconds: int
    since: int = 0


class Resources(msgspec.Struct, frozen=True):
    """The resources of a container that are published to it.

    Attributes:
        shared: Shared CPUs.
        isolated: Exclusive CPUs that ``isolcpus=`` names.
        exclusive: Other exclusive CPUs.
        mems: Its memory nodes by kind.
    """

    shared: CpuSet = NO_CPUS
    isolated: CpuSet = NO_CPUS
    exclusive: CpuSet = NO_CPUS
    mems: Mapping[MemoryKind, NodeSet] = {}

    def __hash__(self) -> int:
        # Needed as a key of caches; mappings have no hash.
        return hash((self.shared, self.isolated, self.exclusive))


class Decision(msgspec.Struct, Generic[StateT], frozen=True):
    """The decision on one event.

    Attributes:
        state: The new state.
        reasons: One per container that the event concerns.
        pin: For the container that is created or updated.
        updates: For other containers whose pins differ from those last sent; never
            for the one that is created.
        scheduling: Scheduling class of a container that is created or started.
        timers: Events that the policy should receive later.
    """

    state: StateT
    reasons: tuple[Reason, ...]
    pin: Pin = NO_PIN
    updates: tuple[PinUpdate, ...] = ()
    scheduling: SchedulingClass | None = None
    timers: tuple[Timer, ...] = ()


class Policy(Protocol[StateT]):
    """Makes decisions without state of its own: all that it knows is an argument.

    `nri_resmgr.policy.views.PolicyViews` is what it shows of a state.
    """

    @property
    def kind(self) -> str:
        """The kind of the configuration document."""

    def start(self) -> StateT:
        """Return the state of a node without containers."""

    def decide(self, state: StateT, event: Event) -> Decision[StateT]:
        """Decide on *event* in *state*; the arguments are never changed.

        Raises:
            PolicyError: The node cannot grant the request. *state* still applies,
                so there is nothing to roll back. Only `PodCreated`, `Created` and
                `Updated` are ever refused.
        """

    def pins(self, state: StateT) -> Mapping[str, Pin]:
        """Return the desired pin of every container in *state*, by id."""
