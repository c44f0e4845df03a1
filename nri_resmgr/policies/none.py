"""The kind of the policy that pins nothing: reads its configuration and builds it."""

from __future__ import annotations

from typing import Final

from nri_resmgr.config.none_policy import NonePolicyConfig, read_none_policy
from nri_resmgr.config.table import Table
from nri_resmgr.host.tree import Tree
from nri_resmgr.policies.kind import PolicyKind
from nri_resmgr.policy.none import NonePolicy, NoneState
from nri_resmgr.policy.scheduling import SchedulingRules
from nri_resmgr.topology import Machine


class NoneKind(PolicyKind[NonePolicyConfig]):
    """Entry point of this kind of policy."""

    name = "NonePolicy"
    state = NoneState

    def read(self, top: Table) -> NonePolicyConfig:
        """See `PolicyKind`."""
        return read_none_policy(top)

    def build(
        self, config: NonePolicyConfig, _machine: Machine, _tree: Tree | None
    ) -> NonePolicy:
        """See `PolicyKind`."""
        return NonePolicy(
            SchedulingRules(
                classes=config.scheduling_classes,
                by_namespace=config.namespace_scheduling,
                by_qos=config.qos_scheduling,
            )
        )


KIND: Final = NoneKind()
