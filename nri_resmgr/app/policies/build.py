"""Builds a policy from its configuration and a machine."""

from __future__ import annotations

from nri_resmgr.config import PolicyConfig
from nri_resmgr.host.tree import Tree
from nri_resmgr.kinds import kind_named
from nri_resmgr.log import Logger
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.topology import Machine

log = Logger(__name__)


def build_policy(
    config: PolicyConfig, machine: Machine, tree: Tree | None = None
) -> ViewedPolicy[KnowsContainers]:
    """Build the policy that *config* selects; logs warnings about the configuration.

    Args:
        config: The configuration.
        machine: The machine whose CPUs and memory the policy allocates.
        tree: The host, whose cgroups the configuration may name.

    Raises:
        BadSetting: The configuration does not fit the machine.
    """
    policy = policy_for(config, machine, tree)
    warnings = config.warnings + host_warnings(config, machine, tree)
    if config.ineffective:
        log.warning("configuration.ineffective", paths=config.ineffective)
    for path, why in warnings:
        log.warning("configuration.warning", path=path, why=why)
    return policy


def policy_for(
    config: PolicyConfig, machine: Machine, tree: Tree | None
) -> ViewedPolicy[KnowsContainers]:
    """Build the policy; the caller reports warnings about *config*.

    Raises:
        BadSetting: The configuration does not fit the machine.
    """
    return kind_named(config.kind).build(config, machine, tree)


def host_warnings(
    config: PolicyConfig, machine: Machine, tree: Tree | None
) -> tuple[tuple[str, str], ...]:
    """Return what a host supports only in part of classes and host settings.

    Args:
        config: The configuration.
        machine: The model of the host.
        tree: The host; None where only the model is known.

    Returns:
        Paths, each with the reason.

    Raises:
        BadSetting: The host does not support a setting at all.
        HostError: A file of the host cannot be read.
    """
    classes = (config.cpu_classes, config.rdt, config.blockio)
    memory = (config.memory_qos, config.memory_policy)
    is_default = config.interrupts == ("*",) and not any(
        one is not None for one in (*classes, *memory)
    )
    if tree is None or is_default:
        return ()
    # Late: on the start path, and few configurations have any of these.
    from nri_resmgr.app.policies.host_fit import fit_host

    return tuple(fit_host(config, machine, tree))
