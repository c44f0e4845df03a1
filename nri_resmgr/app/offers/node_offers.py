"""The node's extended resources as computed last, and what asks for others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.config import PolicyConfig
from nri_resmgr.policy.events import Event

if TYPE_CHECKING:  # few nodes publish any
    from nri_resmgr.app.offers.extended_resources import Amount


class Registrations(Protocol):
    """Device plugins that the kubelet takes or refuses."""

    @property
    def registered(self) -> tuple[str, ...]:
        """Names of the resources that the kubelet has taken."""

    @property
    def why(self) -> str:
        """Why it has not taken others; empty if it has."""


class NodeOffers(DecisionObserver):
    """Notices decisions and configurations; the daemon computes what they change.

    Attributes:
        changed: Set by each decision and configuration.
        reconfigured: Set by each configuration: it may be the first that publishes.
        amounts: The extended resources.
        plugins: Their device plugins; None where there are none.
        no_plugins: Why there are none.
        features_problem: Why the file of features is not written.
    """

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self.reconfigured = asyncio.Event()
        self.amounts: tuple[Amount, ...] = ()
        self.plugins: Registrations | None = None
        self.no_plugins = ""
        self.features_problem = ""

    def why_not_registered(self, name: str) -> str:
        """Return why the kubelet does not have a resource; empty if it does."""
        if self.plugins is None:
            return self.no_plugins or "not registered yet"
        if name in self.plugins.registered:
            return ""
        return self.plugins.why or "not registered yet"

    def decided(self, event: Event, decision: PolicyDecision) -> None:  # noqa: ARG002 - all may change it
        """Have the resources computed again."""
        self.changed.set()

    def configured(self, config: PolicyConfig) -> None:  # noqa: ARG002 - as above
        """Have the resources computed again."""
        self.changed.set()
        self.reconfigured.set()
