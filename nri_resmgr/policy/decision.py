"""What a policy answers, and what makes something a policy."""

from __future__ import annotations

import enum
from typing import Generic, Protocol, TypeVar

import attrs

from nri_resmgr.policy.events import NO_PIN, Event, Pin
from nri_resmgr.values import NO_CPUS, CpuSet

StateT = TypeVar("StateT")


class Rule(enum.StrEnum):
    """Why a container is where it is; logged with every decision, asserted by tests."""

    # CPUs of its own
    WHOLE_CPUS = "whole-cpus"
    ISOLATED_CPU = "isolated-cpu"
    OLD_PLACE = "old-place"
    KEPT = "kept"
    GROWN_IN_PLACE = "grown-in-place"
    SHRUNK_IN_PLACE = "shrunk-in-place"
    MOVED = "moved"
    # CPUs with others
    RESERVED_NAMESPACE = "reserved-namespace"
    NOT_GUARANTEED = "not-guaranteed"
    NOT_WHOLE_CPUS = "not-whole-cpus"
    FELL_BACK = "fell-back"
    # no new place
    UNCHANGED = "unchanged"
    RELEASED = "released"
    UNKNOWN_CONTAINER = "unknown-container"


@attrs.frozen
class Reason:
    """Why one container got what it got.

    Attributes:
        container: Its id.
        title: ``namespace/pod/container``; empty for an unknown container.
        cpus: Where it runs now; empty when it is gone or not pinned.
        detail: What the rule alone does not say: the level that the allocator
            decided on, or the refusal that was averted.
    """

    rule: Rule
    container: str
    title: str = ""
    cpus: CpuSet = NO_CPUS
    detail: str = ""


@attrs.frozen
class PinUpdate:
    """News for a container that exists; an empty set in it is "as before"."""

    container: str
    pin: Pin


@attrs.frozen
class Decision(Generic[StateT]):
    """The answer to one event.

    Attributes:
        state: What holds from now on.
        reasons: One per container that the event is about.
        pin: For the container that is created or updated.
        updates: For other containers, whose values differ from what the runtime
            was last told; never for the one that is created.
    """

    state: StateT
    reasons: tuple[Reason, ...]
    pin: Pin = NO_PIN
    updates: tuple[PinUpdate, ...] = ()


class Policy(Protocol[StateT]):
    """Decides; keeps nothing. What it knows of containers is in the state."""

    @property
    def kind(self) -> str:
        """The kind of the configuration document."""

    def start(self) -> StateT:
        """Return the state of a node without containers."""

    def decide(self, state: StateT, event: Event) -> Decision[StateT]:
        """Answer *event* against *state*; the argument is never changed.

        Raises:
            PolicyError: The node cannot grant the request. *state* is still the
                truth, so there is nothing to roll back. Only `Created` and
                `Updated` are ever refused.
        """
