"""``GET /v1/explain``: why containers have what they have, and how it came so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from nri_resmgr.app.observing.history import REFUSED, ContainerChange, History, Row
from nri_resmgr.control.candidates import candidates_of
from nri_resmgr.control.classes import class_sentences
from nri_resmgr.control.containers import Data, View, container_of, view_of
from nri_resmgr.control.cpu_class_reasons import host_sentences
from nri_resmgr.control.events import event_of, reason_of
from nri_resmgr.control.http_request import RequestRefused
from nri_resmgr.control.isolation import isolation_sentences
from nri_resmgr.control.memory_reasons import memory_sentences
from nri_resmgr.control.names import Named, find
from nri_resmgr.control.subject import API_VERSION, Subject
from nri_resmgr.control.times import time_text
from nri_resmgr.policy.decision import Reason, Rule
from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.sentences import (
    DECIDED_SENTENCES,
    LEVEL_SENTENCES,
    RULE_SENTENCES,
    TYPE_SENTENCES,
)

# They say nothing of why a container is where it is.
_NO_PLACEMENT: Final = frozenset({Rule.UNCHANGED, Rule.RELEASED, Rule.COLD_START_ENDED})
_POD_PLACED: Final = "pod.placed"


def explanation_of(subject: Subject, pod: str, container: str) -> Data:
    """Explain the containers that are meant, and what of them was refused of late.

    Raises:
        RequestRefused: Nobody fits, or more than one.
    """
    view, history = view_of(subject), subject.history
    here = [_named(spec) for spec in view.specs.values()]
    gone = [_named_of(change) for change in history.removed()]
    refused = [Named.of_title(row.title) for row in history.rows_of_kind(REFUSED)]
    # Who is here goes before who was.
    found = find(pod, container, here) or find(pod, container, [*gone, *refused])
    if not found:
        what = f"{pod}/{container}" if container else pod
        raise RequestRefused(404, f"no container here, or gone of late, fits {what!r}")
    titles = {(one.pod_title, one.container) for one in found}
    return {
        "apiVersion": API_VERSION,
        "kind": "Explanation",
        "containers": [_explained(one, view, subject) for one in found if one.id],
        "refusals": [
            event_of(row)
            for row in history.rows_of_kind(REFUSED)
            if _is_about(row, titles, whole_pod=not container)
        ],
    }


def _is_about(row: Row, titles: set[tuple[str, str]], *, whole_pod: bool) -> bool:
    named = Named.of_title(row.title)
    if (named.pod_title, named.container) in titles:
        return True
    pods = {pod for pod, _ in titles}
    return named.pod_title in pods and (whole_pod or not named.container)


def _named(spec: ContainerSpec) -> Named:
    return Named(
        spec.namespace, spec.pod_name, spec.name, spec.id, spec.pod, spec.pod_uid
    )


def _named_of(change: ContainerChange) -> Named:
    return Named.of_title(change.reason.title, change.reason.container)


def _explained(named: Named, view: View, subject: Subject) -> Data:
    history, policy = subject.history, subject.policy
    story = history.changes_of(named.id)
    spec = view.specs.get(named.id)
    placed = [one for one in story if one.reason.rule not in _NO_PLACEMENT]
    data: Data = {
        "title": f"{named.pod_title}/{named.container}",
        "here": spec is not None,
        "placement": _placement(placed[-1], history, named) if placed else None,
        "history": list(_story(named.id, story, history)),
    }
    if spec is not None:
        data["container"] = container_of(spec, view)
        data["host"] = [
            *host_sentences(spec, view, subject),
            *isolation_sentences(spec, view, subject),
            *class_sentences(spec, policy),
            *memory_sentences(spec, policy.config),
        ]
        data["candidates"] = list(candidates_of(spec.id, policy.policy, policy.state))
    return data


def _placement(change: ContainerChange, history: History, named: Named) -> Data:
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
        return f"the whole pod was given a place beforehand: {reason.pool}"
    return f"no place was found for the whole pod beforehand: {reason.detail}"


def _sentences(reason: Reason) -> Iterator[str]:
    yield RULE_SENTENCES[reason.rule]
    for pool, why in reason.tried:
        yield f"tried before: {pool}, but {why.removeprefix(f'{pool}: ')}"
    if decided := DECIDED_SENTENCES.get(reason.decided):
        yield f"of all pools it went to {reason.pool}: {decided}"
    elif reason.pool:
        yield f"it went to {reason.pool}"
    if chosen := TYPE_SENTENCES.get(reason.decided):
        yield f"it goes into balloons of this type: {chosen}"
    if reason.detail:
        levels: dict[Any, str] = {**LEVEL_SENTENCES}
        near = levels.get(reason.detail)
        yield f"its own CPUs are {near}" if near else str(reason.detail)


def _story(
    container: str, story: tuple[ContainerChange, ...], history: History
) -> Iterator[Data]:
    """Merge what was decided on it and what others' decisions meant for it."""
    own = {one.row.number: _chapter(one) for one in story}
    others = {
        row.number: _chapter_by_others(row, update.pin)
        for row, update in history.updates_of(container)
        if row.number not in own
    }
    yield from (both for _, both in sorted((own | others).items()))


def _chapter(change: ContainerChange) -> Data:
    row, reason = change.row, change.reason
    head = {"number": row.number, "time": time_text(row.time), "kind": row.kind}
    sentence = {"sentence": RULE_SENTENCES[reason.rule]}
    return head | reason_of(reason) | sentence


def _chapter_by_others(row: Row, pin: Pin) -> Data:
    who = ", ".join(one.title or one.container for one in row.reasons[:1])
    found = {
        "number": row.number,
        "time": time_text(row.time),
        "kind": row.kind,
        "cpus": str(pin.cpus),
        "mems": str(pin.mems),
        "because": who,
    }
    return {key: value for key, value in found.items() if value}
