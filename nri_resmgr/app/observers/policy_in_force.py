"""The policy in force, as observers and appliers see it."""

from __future__ import annotations

from typing import Protocol

from nri_resmgr.config import PolicyConfig
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.views import ViewedPolicy


class PolicyInForce(Protocol):
    """The configuration, policy and state at this moment; see `ResourcePolicy`."""

    @property
    def config(self) -> PolicyConfig:
        """The configuration in force."""

    @property
    def policy(self) -> ViewedPolicy[KnowsContainers]:
        """The policy in force."""

    @property
    def state(self) -> KnowsContainers:
        """The policy's containers and grants."""
