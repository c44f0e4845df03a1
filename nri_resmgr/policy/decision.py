"""What a policy answers, and what makes something a policy."""

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
    """Why a container is where it is; logged with every decision, asserted by tests."""

    # CPUs of its own
    WHOLE_CPUS = "whole-cpus"
    ISOLATED_CPU = "isolated-cpu"
    MIXED_CPUS = "mixed-cpus"
    OLD_PLACE = "old-place"
    KEPT = "kept"
    GROWN_IN_PLACE = "grown-in-place"
    SHRUNK_IN_PLACE = "shrunk-in-place"
    MOVED = "moved"
    # CPUs with others
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
    # no new place
    UNCHANGED = "unchanged"
    RELEASED = "released"
    POD_PLACED = "pod-placed"
    COLD_START = "cold-start"
    COLD_START_ENDED = "cold-start-ended"
    UNKNOWN_CONTAINER = "unknown-container"


class Reason(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Why one container got what it got.

    Attributes:
        container: Its id.
        title: ``namespace/pod/container``; empty for an unknown container.
        cpus: Where it runs now; empty when it is gone or not pinned.
        detail: What the rule alone does not say: the level that the allocator
            decided on, or the refusal that was averted.
        mems: Its memory nodes; empty when it is gone or not pinned.
        pool: The name of the pool that it was granted from, if pools have names.
        decided: What told that pool from the last one that was as good.
        tried: Better pools that failed, with the sentence that says why.
        source: Where the amounts of the request came from.
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
    """News for a container that exists; an empty set in it is "as before"."""

    container: str
    pin: Pin


class Timer(msgspec.Struct, frozen=True):
    """An event that is to be handed back later.

    Attributes:
        seconds: How much later.
        since: From when, UNIX nanoseconds; 0 for from now.
    """

    event: Event
    seconds: int
    since: int = 0


class Resources(msgspec.Struct, frozen=True):
    """What a container is told of what it has; each set may be empty.

    Attributes:
        shared: CPUs that it shares with others.
        isolated: CPUs of its own that the scheduler leaves alone.
        exclusive: Other CPUs of its own.
        mems: Its memory nodes by kind.
    """

    shared: CpuSet = NO_CPUS
    isolated: CpuSet = NO_CPUS
    exclusive: CpuSet = NO_CPUS
    mems: Mapping[MemoryKind, NodeSet] = {}

    def __hash__(self) -> int:
        # It is a key of caches, and mappings have no hash.
        return hash((self.shared, self.isolated, self.exclusive))


class Decision(msgspec.Struct, Generic[StateT], frozen=True):
    """The answer to one event.

    Attributes:
        state: What holds from now on.
        reasons: One per container that the event is about.
        pin: For the container that is created or updated.
        updates: For other containers, whose values differ from what the runtime
            was last told; never for the one that is created.
        scheduling: What the processes of one that is created or started begin with.
        timers: Events to hand back later.
    """

    state: StateT
    reasons: tuple[Reason, ...]
    pin: Pin = NO_PIN
    updates: tuple[PinUpdate, ...] = ()
    scheduling: SchedulingClass | None = None
    timers: tuple[Timer, ...] = ()


class Policy(Protocol[StateT]):
    """Decides; keeps nothing. What it knows of containers is in the state.

    What it shows of a state is `nri_resmgr.policy.views.PolicyViews`.
    """

    @property
    def kind(self) -> str:
        """The kind of the configuration document."""

    def start(self) -> StateT:
        """Return the state of a node without containers."""

    def decide(self, state: StateT, event: Event) -> Decision[StateT]:
        """Answer *event* against *state*; the argument is never changed.

        Raises:
            PolicyError: The node cannot grant the request. *state* is still the
                truth, so there is nothing to roll back. Only `PodCreated`,
                `Created` and `Updated` are ever refused.
        """

    def pins(self, state: StateT) -> Mapping[str, Pin]:
        """Return what should hold for every container in *state*, by id."""
