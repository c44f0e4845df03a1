"""Builds a policy from its configuration and a machine."""

from __future__ import annotations

from collections.abc import Callable

from nri_resmgr.config import BadSetting, PolicyConfig
from nri_resmgr.host.tree import Tree
from nri_resmgr.kubelet.sockets import WhyNoDevices
from nri_resmgr.log import Logger
from nri_resmgr.policies import find_kind
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.topology import Machine

log = Logger(__name__)


def build_policy(
    config: PolicyConfig,
    machine: Machine,
    tree: Tree | None = None,
    why_no_devices: WhyNoDevices = str,
    on_misfit: Callable[[BadSetting], None] | None = None,
) -> ViewedPolicy[KnowsContainers]:
    """Build the policy that *config* selects; logs warnings about the configuration.

    Raises:
        BadSetting: The configuration does not fit the machine. A class or another
            setting of the host that this does not support is passed to *on_misfit*
            instead, if given.
    """
    policy = find_kind(config.kind).build(config, machine, tree)
    found: tuple[tuple[str, str], ...] = ()
    try:
        found = host_warnings(config, machine, tree, why_no_devices)
    except BadSetting as error:
        if on_misfit is None:
            raise
        on_misfit(error)
    if config.ineffective:
        log.warning("configuration.ineffective", paths=config.ineffective)
    for path, why in config.warnings + found:
        log.warning("configuration.warning", path=path, why=why)
    return policy


def host_warnings(
    config: PolicyConfig,
    machine: Machine,
    tree: Tree | None,
    why_no_devices: WhyNoDevices = str,
) -> tuple[tuple[str, str], ...]:
    """Return what a host supports only in part of classes and host settings.

    *why_no_devices* is called where the configuration names devices of containers.

    Returns:
        Paths, each with the reason. Without *tree* only what the machine's model knows
        counts.

    Raises:
        BadSetting: The host does not support a setting at all.
        HostError: A file of the host cannot be read.
    """
    classes = (config.cpu_classes, config.rdt, config.blockio)
    memory = (config.memory_qos, config.memory_policy)
    has_defaults = (config.interrupts, config.exclusivity) == (("*",), "cpuset")
    is_default = has_defaults and not any(
        one is not None for one in (*classes, *memory)
    )
    if not config.preferred_devices and (tree is None or is_default):
        return ()
    # Late: on the start path, and few configurations have any of these.
    from nri_resmgr.app.configuration.host_fit import fit_host

    return tuple(fit_host(config, machine, tree, why_no_devices))
