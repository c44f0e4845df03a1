"""CPUs of claims of other drivers: out of the policy's reach while these last."""

from __future__ import annotations

from collections.abc import Sequence

from nri_resmgr.app.plugin.cpu_claims import ClaimTable
from nri_resmgr.app.plugin.node_policy import NodePolicy
from nri_resmgr.log import Logger
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Synchronized
from nri_resmgr.topology import Machine
from nri_resmgr.topology.without_cpus import without_cpus
from nri_resmgr.values import ResmgrError

log = Logger(__name__)


def begin_claims(policy: NodePolicy, table: ClaimTable) -> None:
    """Begin with the claims that an earlier process knew.

    Before the runtime connects. Their CPUs are taken at once, so that the checkpoint
    fits.
    """
    policy.claims.begin(table)
    take_claimed(policy, sends=False)


def usable_machine(policy: NodePolicy) -> Machine:
    """Return the host without the CPUs of claims, as far as these can be taken."""
    claims, cpus = policy.claims, policy.claims.table.cpus
    return without_cpus(
        policy.host_machine, cpus & claims.taken if claims.conflict else cpus
    )


def take_claimed(
    policy: NodePolicy, more: Sequence[ContainerSpec] = (), *, sends: bool = True
) -> tuple[PinUpdate, ...]:
    """Put the CPUs of present claims out of the policy's reach.

    Args:
        policy: The policy in force.
        more: Running containers to place as well.
        sends: Whether to send changed pins of others.

    Returns:
        The changed pins.
    """
    claims, cpus = policy.claims, policy.claims.table.cpus
    if cpus == claims.taken and not more:
        claims.conflict = ""
        return ()
    engine = policy.engine
    machine, config = engine.machine, engine.config
    try:
        usable = without_cpus(policy.host_machine, cpus)
        decision = engine.rebuild(config, usable, may_lose=True, more=more)
        claims.taken, claims.conflict = cpus, ""
    except ResmgrError as error:
        # The configuration needs these CPUs, such as reserved ones.
        if str(error) != claims.conflict:
            log.error("claims.conflict", cpus=str(cpus), why=str(error))
        claims.conflict = str(error)
        if not more:
            return ()
        decision = engine.rebuild(config, machine, may_lose=True, more=more)
    policy.follow_engine()
    policy.notify(Synchronized(()), decision)
    policy.observers.configured(policy.config)
    updates = (
        *(PinUpdate(one.id, policy.wanted(one.id) or NO_PIN) for one in more),
        *decision.updates,
    )
    if sends:
        policy.send(updates)
    return updates
