"""Adjustments of the cluster: put in force while containers run."""

from __future__ import annotations

from collections.abc import Sequence

from nri_resmgr.app.adjustments.adjustment import Adjustment
from nri_resmgr.app.adjustments.judgement import (
    Judgement,
    judge,
    refused_adjustment,
)
from nri_resmgr.app.adjustments.override import unadjusted, with_adjustment
from nri_resmgr.app.plugin.changes.rebalancing import rebalance
from nri_resmgr.app.plugin.engine import EventRefused
from nri_resmgr.app.plugin.node_policy import NodePolicy
from nri_resmgr.policy.events import Rebalance, Updated


def adjust(policy: NodePolicy, found: Sequence[Adjustment]) -> Judgement:
    """Put adjustments in force as a whole, running containers included.

    Returns:
        What applies to which container; with errors nothing has changed.
    """
    entries = policy.state.ledger.entries
    own = [unadjusted(entry.spec) for entry in entries.values()]
    judged = judge(found, own, policy.known_classes())
    if judged.errors:
        return judged
    by_name = {one.name: one for one in found}
    applied = judged.applied
    specs = [
        with_adjustment(one, by_name[applied[one.id]]) if one.id in applied else one
        for one in own
    ]
    events = [Updated(one) for one in specs if one != entries[one.id].spec]
    # Those that need less make room for those that need more.
    events.sort(key=lambda one: one.spec.request - entries[one.spec.id].spec.request)
    try:
        decisions = policy.engine.decide_all(events)
    except EventRefused as refused:
        return refused_adjustment(judged, refused.container, str(refused))
    policy.specs.adjustments.accept(found)
    for event, decision in zip(events, decisions, strict=True):
        policy.notify_and_send(event, decision)
    if events and policy.policy.rebalances:
        rebalance(policy, Rebalance(policy.config.rebalance.at_most))
    return judged


def note_reported(policy: NodePolicy) -> None:
    """Have limits written again that the runtime's record was reported without.

    Those of an earlier process may have waited, such as for a container that used more.
    """
    if behind := policy.specs.adjustments.decided.behind():
        policy.class_hosts.limits.unsure.update(behind)


def note_adjusted(policy: NodePolicy) -> None:
    """Note the limits that an earlier process has set."""
    for entry in policy.state.ledger.entries.values():
        if entry.spec.adjusted is not None:
            policy.specs.adjustments.decided.add(entry.spec)
            policy.class_hosts.limits.note_adjusted(entry.spec)
