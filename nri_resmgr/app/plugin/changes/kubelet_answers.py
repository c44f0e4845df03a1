"""What the kubelet answers about a pod whose containers run: its claims and devices."""

from __future__ import annotations

from nri_resmgr.app.plugin.changes.claimed_cpus import take_claimed
from nri_resmgr.app.plugin.node_policy import NodePolicy
from nri_resmgr.app.running.updates import updates_of
from nri_resmgr.kubelet.pod_resources import PodName
from nri_resmgr.log import Logger
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import Pin, Removed, Updated
from nri_resmgr.values import PolicyError

log = Logger(__name__)


def follow_answer(policy: NodePolicy, pod: PodName, uid: str) -> None:
    """Follow the kubelet's answer about a pod, whose containers may run already."""
    found = policy.claims.answered(pod, uid)
    for key in found.to_leave:
        _leave(policy, key)
    more = [policy.specs.of_late(*one) for one in found.to_place]
    take_claimed(policy, more)
    for spec in policy.specs.with_devices(pod, uid):
        event = Updated(spec)
        try:
            decision = policy.engine.follow_hints(spec)
        except PolicyError as error:
            log.warning("hints.not-followed", title=spec.title, why=str(error))
            continue
        policy.notify_and_send(event, decision)


def _leave(policy: NodePolicy, container: str) -> None:
    """Release a container that has a claim after all, and give it its CPUs back."""
    policy.decide_and_send(Removed(container))
    if not policy.options.dry_run:
        cpus = policy.claims.table.containers[container].cpus
        own = PinUpdate(container, Pin(cpus))
        policy.updates.send(lambda _: updates_of((own,))[0], (container,))
