"""Another configuration or machine, put in force while containers run."""

from __future__ import annotations

from functools import partial

from nri_resmgr.app.configuration.fitting import LeftOut, fitted, left_out, put_in_force
from nri_resmgr.app.configuration.status import WouldChange
from nri_resmgr.app.plugin.changes.claimed_cpus import take_claimed, usable_machine
from nri_resmgr.app.plugin.node_policy import NodePolicy
from nri_resmgr.config import PolicyConfig
from nri_resmgr.policy.events import NO_PIN
from nri_resmgr.topology import Machine


def reconfigure(policy: NodePolicy, config: PolicyConfig) -> None:
    """Put another configuration in force, also while containers run.

    Raises:
        BadSetting: It does not fit the machine; nothing has changed.
        ExclusiveCpusLost: It takes exclusive CPUs from containers, and does not say
            that it may; likewise.
        PlacesChanged: The same of places that containers know.
    """
    fits, usable = fitted(config, policy.host_machine), usable_machine(policy)
    policy.rebuild(config, fits, machine=usable, may_lose=config.allow_loss)
    policy.note_left_out(left_out(config, policy.host_machine))
    if policy.claims.conflict:
        take_claimed(policy)  # it may leave their CPUs alone


def would_reconfigure(
    policy: NodePolicy, config: PolicyConfig
) -> tuple[WouldChange, ...]:
    """Return the containers that `reconfigure` would pin otherwise; change none.

    Raises:
        ResmgrError: As `reconfigure`.
    """
    fits = fitted(config, policy.host_machine)
    pins = policy.engine.would_pin(fits, usable_machine(policy))
    return tuple(
        WouldChange(key, entry.spec.title, now, then)
        for key, entry in policy.state.ledger.entries.items()
        if (now := policy.wanted(key) or NO_PIN) != (then := pins.get(key, NO_PIN))
    )


def change_machine(policy: NodePolicy, machine: Machine) -> None:
    """Put another machine in force: CPUs or memory came or went.

    What the configuration says of CPUs that are not there is left out.

    Raises:
        BadSetting: A policy of another package fits no part of its configuration.
    """
    policy.host_machine = machine
    config, usable = policy.config, usable_machine(policy)
    # The CPUs are gone already, whoever had them.
    misfits: list[LeftOut] = []
    rebuild = partial(
        policy.rebuild,
        config,
        machine=usable,
        may_lose=True,
        on_misfit=lambda one: misfits.append(LeftOut(one.path, one.why)),
    )
    check = partial(policy.engine.check, machine=usable)
    found = put_in_force(config, machine, rebuild, check)
    policy.note_left_out((*found, *misfits))
