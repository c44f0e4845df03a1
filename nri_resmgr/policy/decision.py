"""Decisions of policies with their reasons, and the protocol of a policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

import msgspec

from nri_resmgr.policy.events import NO_PIN, Event, Pin
from nri_resmgr.policy.rules import Rule
from nri_resmgr.topology import MemoryKind
from nri_resmgr.values import NO_CPUS, NO_NODES, CpuSet, NodeSet, StoredValue
from nri_resmgr.values.scheduling import SchedulingClass

StateT = TypeVar("StateT")


class Reason(StoredValue, frozen=True):
    """Explanation of the decision about one container.

    Attributes:
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


class PinUpdate(StoredValue, frozen=True):
    """A changed pin of an existing container; an empty set means unchanged."""

    container: str
    pin: Pin


class Timer(msgspec.Struct, frozen=True):
    """An event that the policy should receive some seconds after *since*.

    That is in UNIX nanoseconds; 0 for now.
    """

    event: Event
    seconds: int
    since: int = 0


class Resources(msgspec.Struct, frozen=True):
    """The resources of a container that are published to it; memory nodes are by kind.

    Isolated CPUs are exclusive ones that ``isolcpus=`` names, *exclusive* the others.
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
        reasons: One per container that the event concerns; first that of the event,
            then those of containers that had fallen back.
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

    `nri_resmgr.policy.views.ViewedPolicy` is what it shows of a state.
    """

    @property
    def kind(self) -> str:
        """The kind of the configuration document."""

    @property
    def obeys(self) -> frozenset[str]:
        """The fields of `Preferences` that it obeys, and ``hints`` for these."""

    @property
    def refuses_strict(self) -> bool:
        """True if strict annotations that it cannot obey refuse a container."""

    @property
    def rebalances(self) -> bool:
        """True if it moves containers by `Rebalance`."""

    @property
    def sets_environment(self) -> bool:
        """True if containers get environment variables."""

    def start(self) -> StateT:
        """Return the state of a node without containers."""

    def decide(self, state: StateT, event: Event) -> Decision[StateT]:
        """Decide on *event* in *state*; the arguments are never changed.

        Raises:
            PolicyError: The node cannot grant the request. *state* still applies,
                so there is nothing to roll back. Only `PodCreated`, `Created`,
                `Updated`, `ClaimPrepared` and `ClaimReturned` are ever refused.
        """

    def pins(self, state: StateT) -> Mapping[str, Pin]:
        """Return the desired pin of every container in *state*, by id."""
