"""Builds the static policy from its configuration and a machine."""

from __future__ import annotations

from nri_resmgr.app.policies.chosen_cpus import choose_cpus
from nri_resmgr.config import StaticPolicyConfig
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.static import OnFailure, StaticPolicy, StaticSettings
from nri_resmgr.topology import Machine


def build_static(
    config: StaticPolicyConfig, machine: Machine, tree: Tree | None
) -> StaticPolicy:
    """See `nri_resmgr.app.policies.build.build_policy`."""
    available, reserved = choose_cpus(config.available, config.reserved, machine, tree)
    settings = StaticSettings(
        available=available,
        # By default the lowest one, as the kubelet's static CPU manager does.
        reserved=reserved or (available - machine.isolated or available).lowest(1),
        reserved_namespaces=config.reserved_pool_namespaces,
        pin_cpus=config.pin_cpu,
        pin_memory=config.pin_memory,
        prefer_isolated=config.prefer_isolated_cpus,
        on_failure=OnFailure(config.on_failure),
    )
    return StaticPolicy(machine, settings)
