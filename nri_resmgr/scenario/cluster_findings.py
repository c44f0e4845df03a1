"""The result of a rollout to a cluster: each node after it, and the new pods."""

from __future__ import annotations

import msgspec

from nri_resmgr.policy.rules import Rule
from nri_resmgr.scenario.cluster import ClusterNode
from nri_resmgr.scenario.dealing import DealtPods
from nri_resmgr.scenario.findings import Findings, PlacedContainer
from nri_resmgr.scenario.node import RefusedRequest


class NodeFindings(msgspec.Struct, frozen=True):
    """A node after the rollout."""

    node: ClusterNode
    found: Findings

    @property
    def refused_present(self) -> tuple[RefusedRequest, ...]:
        """The refusals of pods that stay.

        They run on the node, which had placed them in another order or at other times.
        """
        return tuple(one for one in self.found.refusals if one.step < self.node.present)

    @property
    def refused_rollout(self) -> tuple[RefusedRequest, ...]:
        """The refusals of pods of the rollout."""
        return tuple(
            one for one in self.found.refusals if one.step >= self.node.present
        )

    @property
    def fallen_back(self) -> tuple[PlacedContainer, ...]:
        """The containers that share CPUs since exclusive ones were refused."""
        rule = Rule.FELL_BACK.value
        return tuple(one for one in self.found.placements if one.rule == rule)


class ClusterFindings(msgspec.Struct, frozen=True):
    """The nodes of a cluster after a rollout.

    Attributes:
        nodes: In order of their names.
        new: The pods that were on no node before, by their templates.
    """

    nodes: tuple[NodeFindings, ...]
    new: tuple[DealtPods, ...]

    @property
    def has_refusals(self) -> bool:
        """True if a node refused a request, or no node grants a new pod."""
        return any(one.found.refusals for one in self.nodes) or any(
            one.refused for one in self.new
        )
