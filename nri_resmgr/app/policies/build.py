"""A policy out of its configuration, for one machine."""

from __future__ import annotations

from typing import Any

from nri_resmgr.config import PolicyConfig
from nri_resmgr.host.tree import Tree
from nri_resmgr.kinds import kind_named
from nri_resmgr.log import Logger
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.topology import Machine

log = Logger(__name__)


def build_policy(
    config: PolicyConfig, machine: Machine, tree: Tree | None = None
) -> ViewedPolicy[Any]:
    """Build the policy that *config* asks for.

    What the configuration says to no effect, or hardly means, is logged.

    Args:
        config: What the policy is told.
        machine: What it decides about.
        tree: The host, where the configuration may name its cgroups.

    Raises:
        BadSetting: The configuration does not fit the machine.
    """
    policy = policy_for(config, machine, tree)
    warnings = config.warnings + host_warnings(config, machine, tree)
    if config.not_in_force:
        log.warning("configuration.ineffective", paths=config.not_in_force)
    for path, why in warnings:
        log.warning("configuration.warning", path=path, why=why)
    return policy


def policy_for(
    config: PolicyConfig, machine: Machine, tree: Tree | None
) -> ViewedPolicy[Any]:
    """Build it, and leave what there is to say of *config* to the caller.

    Raises:
        BadSetting: The configuration does not fit the machine.
    """
    policy: ViewedPolicy[Any] = kind_named(config.kind).build(config, machine, tree)
    return policy


def host_warnings(
    config: PolicyConfig, machine: Machine, tree: Tree | None
) -> tuple[tuple[str, str], ...]:
    """Say what a host can do only in part of what is said of its own settings.

    Args:
        config: What is said.
        machine: The host's.
        tree: The host; None where nothing is known of it.

    Returns:
        Paths, each with the reason.

    Raises:
        BadSetting: The host cannot do something at all.
        HostError: A file of the host cannot be read.
    """
    found: tuple[tuple[str, str], ...] = ()
    # Few configurations say anything.
    if tree is None:
        return found
    if config.cpu_classes is not None or config.interrupts != ("*",):
        from nri_resmgr.app.policies.fit_host import fit_host

        found += fit_host(config, machine, tree)
    if config.rdt is not None or config.blockio is not None:
        from nri_resmgr.app.policies.fit_classes import fit_classes

        found += tuple(fit_classes(config, tree))
    if config.memory_qos is not None or config.memory_policy is not None:
        from nri_resmgr.app.policies.fit_memory import fit_memory

        found += tuple(fit_memory(config, machine, tree))
    return found
