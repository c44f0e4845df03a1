"""``GET /v1/explain``: why containers have their CPUs and memory, and the history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

from nri_resmgr.app.annotations.unobeyed import unobeyed
from nri_resmgr.app.observers.policy_in_force import PolicySnapshot, snapshot_of
from nri_resmgr.app.observing.history import ContainerChange, History, Row
from nri_resmgr.app.observing.refusal_log import REFUSED
from nri_resmgr.control.claims import (
    device_sentences,
    explained_claims,
    named_claimed,
)
from nri_resmgr.control.classes import class_sentences
from nri_resmgr.control.containers import container_of
from nri_resmgr.control.cpu_class_reasons import host_sentences
from nri_resmgr.control.daemon_view import API_VERSION, DaemonView
from nri_resmgr.control.delivery import KernelReader
from nri_resmgr.control.events import event_of, reason_of
from nri_resmgr.control.http_request import RequestRefused
from nri_resmgr.control.isolation import isolation_sentences
from nri_resmgr.control.memory_reasons import memory_sentences
from nri_resmgr.control.names import NamedContainer, find
from nri_resmgr.control.partitions import partition_sentences
from nri_resmgr.control.reservations import matching_reservations, named_reservation
from nri_resmgr.control.times import time_text
from nri_resmgr.control.top_tier import top_tier_ineffective, top_tier_sentences
from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.policy.cpus.level_sentences import LEVEL_SENTENCES
from nri_resmgr.policy.decision import Reason
from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.sentences import (
    DECIDED_SENTENCES,
    RULE_SENTENCES,
    TYPE_SENTENCES,
)
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.values.documents import JsonObject

StateT = TypeVar("StateT")

# `Reason.detail` is one of these words, or another text.
_NEAR: Final = {str(level): words for level, words in LEVEL_SENTENCES.items()}

# These rules do not explain why a container has its CPUs.
_NO_PLACEMENT: Final = frozenset({Rule.UNCHANGED, Rule.RELEASED, Rule.COLD_START_ENDED})
_POD_PLACED: Final = "pod.placed"


def explanation_of(daemon: DaemonView, pod: str, container: str) -> JsonObject:
    """Explain the containers that match, with recent refusals.

    Raises:
        RequestRefused: No container matches, or several pods do.
    """
    snapshot, history = snapshot_of(daemon.policy), daemon.history
    present = [_named(spec) for spec in snapshot.specs.values()]
    coming = [named_reservation(one) for one in snapshot.reservations]
    gone = [
        NamedContainer.of_title(one.reason.title, one.reason.container)
        for one in history.removed()
    ]
    refused = [
        NamedContainer.of_title(row.title) for row in history.rows_of_kind(REFUSED)
    ]
    # Present and coming containers have precedence over removed ones.
    claims = daemon.policy.claims
    there = find(pod, container, [*present, *coming, *named_claimed(claims)])
    found = there or find(pod, container, [*gone, *refused])
    if not found:
        what = f"{pod}/{container}" if container else pod
        raise RequestRefused(
            404, f"no running or recently removed container matches {what!r}"
        )
    titles = {(one.pod_title, one.container) for one in found}
    return {
        "apiVersion": API_VERSION,
        "kind": "Explanation",
        "containers": [
            _explained(one, snapshot, daemon)
            for one in found
            if one.id and one.id not in claims.table.containers
        ],
        "claimed": list(explained_claims(claims, found)),
        "reservations": list(matching_reservations(snapshot, found)),
        "refusals": [
            event_of(row) | {"times": history.times(row)}
            for row in history.rows_of_kind(REFUSED)
            if _is_about(row, titles, whole_pod=not container)
        ],
    }


async def explanation_with_kernel(
    daemon: DaemonView, kernel: KernelReader, pod: str, container: str
) -> JsonObject:
    """Explain as `explanation_of` does, with what the kernel has in force now."""
    explanation = explanation_of(daemon, pod, container)
    present = {
        one["container"]["id"]: one
        for one in explanation["containers"]
        if one["present"]
    }
    entries = daemon.policy.state.ledger.entries
    specs = (entries[key].spec for key in present)
    found = await kernel.read(
        [CgroupReference(one.id, one.cgroup, one.pid) for one in specs]
    )
    for key, one in present.items():
        one["inForce"] = found.get(key)
    return explanation


def candidates_of(
    container: str, policy: ViewedPolicy[StateT], state: StateT
) -> Iterator[JsonObject]:
    """Yield the pools that could hold a container if it were placed now, best first.

    Empty if the policy does not rank pools.
    """
    for one in policy.candidates(state, container):
        yield {
            "pool": one.pool,
            "decided": one.decided,
            # A policy of another package may have other criteria.
            "sentence": DECIDED_SENTENCES.get(one.decided, one.decided),
            "scores": [
                {"criterion": criterion, "value": value}
                for criterion, value in one.scores
            ],
        }


def _is_about(row: Row, titles: set[tuple[str, str]], *, whole_pod: bool) -> bool:
    named = NamedContainer.of_title(row.title)
    if (named.pod_title, named.container) in titles:
        return True
    pods = {pod for pod, _ in titles}
    return named.pod_title in pods and (whole_pod or not named.container)


def _named(spec: ContainerSpec) -> NamedContainer:
    return NamedContainer(
        spec.namespace, spec.pod_name, spec.name, spec.id, spec.pod, spec.pod_uid
    )


def _explained(
    named: NamedContainer, snapshot: PolicySnapshot, daemon: DaemonView
) -> JsonObject:
    history, policy = daemon.history, daemon.policy
    story = history.changes_of(named.id)
    spec = snapshot.specs.get(named.id)
    placed = [one for one in story if one.reason.rule not in _NO_PLACEMENT]
    data: JsonObject = {
        "title": f"{named.pod_title}/{named.container}",
        "present": spec is not None,
        "placement": _placement(placed[-1], history, named) if placed else None,
        "history": list(_story(named.id, story, history)),
    }
    if spec is not None:
        data["container"] = container_of(spec, snapshot, daemon)
        data["inForce"] = None
        data["ineffective"] = [
            *(
                one.sentence(policy.policy.kind)
                for one in unobeyed(spec.preferences, policy.policy.obeys)
            ),
            *top_tier_ineffective(spec, policy),
        ]
        data["host"] = [
            *host_sentences(spec, snapshot, daemon),
            *device_sentences(spec, policy),
            *isolation_sentences(spec, snapshot, daemon),
            *partition_sentences(spec, policy),
            *class_sentences(spec, policy),
            *memory_sentences(spec, policy.config),
            *top_tier_sentences(spec, policy),
        ]
        data["candidates"] = list(candidates_of(spec.id, policy.policy, policy.state))
    return data


def _placement(
    change: ContainerChange, history: History, named: NamedContainer
) -> JsonObject:
    found = reason_of(change.reason)
    found |= {"number": change.row.number, "time": time_text(change.row.time)}
    found["sentences"] = list(_sentences(change.reason))
    pods = (row for row in history.rows_of_kind(_POD_PLACED))
    whole = [row for row in pods if row.reasons[0].container == named.pod_id]
    if whole and named.pod_id:
        found["sentences"].append(_whole_pod(whole[-1].reasons[0]))
    return found


def _whole_pod(reason: Reason) -> str:
    if reason.rule is Rule.POD_PLACED:
        return f"the pool was chosen for the whole pod beforehand: {reason.pool}"
    return f"no pool was found for the whole pod beforehand: {reason.detail}"


def _sentences(reason: Reason) -> Iterator[str]:
    yield RULE_SENTENCES[reason.rule]
    for pool, why in reason.tried:
        yield f"tried first: {pool}, but {why.removeprefix(f'{pool}: ')}"
    if decided := DECIDED_SENTENCES.get(reason.decided):
        yield f"of all pools, {reason.pool} was chosen: {decided}"
    elif reason.pool:
        yield f"its pool is {reason.pool}"
    if chosen := TYPE_SENTENCES.get(reason.decided):
        yield f"balloons of this type were chosen: {chosen}"
    if reason.detail:
        near = _NEAR.get(reason.detail)
        yield f"its exclusive CPUs are {near}" if near else str(reason.detail)


def _story(
    container: str, story: tuple[ContainerChange, ...], history: History
) -> Iterator[JsonObject]:
    """Merge decisions on the container and its updates by decisions on others."""
    decided = {one.row.number: _decision(one) for one in story}
    updated = {
        row.number: _update(row, update.pin)
        for row, update in history.updates_of(container)
        if row.number not in decided
    }
    yield from (both for _, both in sorted((decided | updated).items()))


def _decision(change: ContainerChange) -> JsonObject:
    row, reason = change.row, change.reason
    kind: str = row.kind
    sentence, first = RULE_SENTENCES[reason.rule], row.reasons[0]
    # The event was another container's, which left room.
    if reason.rule is Rule.NOW_FITS and first.container != reason.container:
        kind, cause = "container.now-fits", first.title or first.container
        sentence = f"{sentence}, because of {cause}"
    head = {"number": row.number, "time": time_text(row.time), "kind": kind}
    return head | reason_of(reason) | {"sentence": sentence}


def _update(row: Row, pin: Pin) -> JsonObject:
    cause = ", ".join(one.title or one.container for one in row.reasons[:1])
    found = {
        "number": row.number,
        "time": time_text(row.time),
        "kind": row.kind,
        "cpus": str(pin.cpus),
        "mems": str(pin.mems),
        "causedBy": cause,
    }
    return {key: value for key, value in found.items() if value}
