"""Requests that a source knows better once their containers run."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from nri_resmgr.app.plugin.node_policy import NodePolicy
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import Updated
from nri_resmgr.values import PolicyError

log = Logger(__name__)


def correct_requests(policy: NodePolicy, pods: Iterable[str]) -> None:
    """Place containers anew whose requests a source knows better by now.

    Those that the node cannot grant keep what they have.

    Args:
        policy: The policy in force.
        pods: Ids of pod sandboxes.
    """
    for pod in pods:
        _place_pod(policy, pod)
        _correct_containers(policy, pod)


def _place_pod(policy: NodePolicy, pod: str) -> None:
    """Place a pod without containers as a whole, if its requests are known by now."""
    if (late := policy.specs.of_late_pod(pod)) is None:
        return
    is_vm = pod in policy.vm_pods.present
    try:
        policy.decide_and_send(msgspec.structs.replace(late, in_vm=is_vm))
    except PolicyError as error:
        log.warning("requests.not-granted", pod=pod, why=str(error))


def _correct_containers(policy: NodePolicy, pod: str) -> None:
    known = policy.state.ledger.entries
    events = [Updated(one) for one in policy.specs.corrected(pod)]
    # Those that need less make room for those that need more.
    events.sort(key=lambda one: one.spec.request - known[one.spec.id].spec.request)
    for event in events:
        try:
            decision = policy.engine.decide(event)
        except PolicyError as error:
            spec = event.spec
            log.warning(
                "requests.not-granted",
                container=spec.id,
                title=spec.title,
                source=spec.origin,
                why=str(error),
            )
        else:
            policy.notify_and_send(event, decision)
