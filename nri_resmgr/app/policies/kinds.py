"""The built-in kinds of policies, which the package's own entry points name.

Imports are inside the methods: a node uses one kind, and loads it on its start path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nri_resmgr.config.table import Table
from nri_resmgr.host.tree import Tree
from nri_resmgr.kinds import PolicyKind
from nri_resmgr.policy.records import Records
from nri_resmgr.topology import Machine

if TYPE_CHECKING:
    from nri_resmgr.config.balloons import BalloonsConfig
    from nri_resmgr.config.static_policy import StaticPolicyConfig
    from nri_resmgr.config.topology_aware import TopologyAwareConfig
    from nri_resmgr.policy.balloons.policy import BalloonsPolicy
    from nri_resmgr.policy.static import StaticPolicy
    from nri_resmgr.policy.topology_aware.policy import TopologyAwarePolicy


class _Balloons(PolicyKind["BalloonsConfig"]):
    name = "BalloonsPolicy"

    def read(self, top: Table) -> BalloonsConfig:
        from nri_resmgr.config.balloons import read_balloons

        return read_balloons(top)

    def build(
        self, config: BalloonsConfig, machine: Machine, tree: Tree | None
    ) -> BalloonsPolicy:
        from nri_resmgr.app.policies.balloons import build_balloons

        return build_balloons(config, machine, tree)

    def records(self) -> Records:
        from nri_resmgr.policy.balloons import records

        return records


class _Static(PolicyKind["StaticPolicyConfig"]):
    name = "StaticPolicy"

    def read(self, top: Table) -> StaticPolicyConfig:
        from nri_resmgr.config.static_policy import read_static_policy

        return read_static_policy(top)

    def build(
        self, config: StaticPolicyConfig, machine: Machine, tree: Tree | None
    ) -> StaticPolicy:
        from nri_resmgr.app.policies.static import build_static

        return build_static(config, machine, tree)

    def records(self) -> Records:
        from nri_resmgr.policy.static import records

        return records


class _TopologyAware(PolicyKind["TopologyAwareConfig"]):
    name = "TopologyAwarePolicy"

    def read(self, top: Table) -> TopologyAwareConfig:
        from nri_resmgr.config.topology_aware import read_topology_aware

        return read_topology_aware(top)

    def build(
        self, config: TopologyAwareConfig, machine: Machine, tree: Tree | None
    ) -> TopologyAwarePolicy:
        from nri_resmgr.app.policies.topology_aware import build_topology_aware

        return build_topology_aware(config, machine, tree)

    def records(self) -> Records:
        from nri_resmgr.policy.topology_aware import records

        return records


BALLOONS: Final = _Balloons()
STATIC: Final = _Static()
TOPOLOGY_AWARE: Final = _TopologyAware()
