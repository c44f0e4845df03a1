"""``GET /v1/cluster``: the agent, and the verdicts on the cluster's documents."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from nri_resmgr.app.configuration.cluster import (
    AgentReport,
    ClusterStatus,
    JudgedAdjustment,
    JudgedAdjustments,
    JudgedConfiguration,
)
from nri_resmgr.app.configuration.status import WouldChange
from nri_resmgr.control.times import time_text
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.spool import ClusterObject
from nri_resmgr.values.documents import JsonObject

_SECOND: Final = 10**9  # nanoseconds
_MOST: Final = 100  # containers that a trial lists


def cluster_of(status: ClusterStatus, containers: KnowsContainers) -> JsonObject:
    """Describe the agent and the documents of the cluster.

    Args:
        status: Their status.
        containers: The present containers, with the adjustments that they have.
    """
    judged = status.adjustments
    return {
        "spool": {"path": status.path, "problem": status.problem},
        "agent": _agent(status.agent),
        "agentSilentSeconds": round(status.silence, 3),
        "agentAbsent": status.absent,
        "configuration": status.configuration and _configuration(status.configuration),
        "adjustments": judged and _adjustments(judged, containers),
    }


def _agent(report: AgentReport | None) -> JsonObject | None:
    if report is None:
        return None
    contact = report.contact
    return {
        "version": report.version,
        "node": report.node,
        "contactSeconds": contact and round(time.monotonic() - contact, 3),
        "problem": report.problem,
    }


def _configuration(judged: JudgedConfiguration) -> JsonObject:
    return {
        "object": _object(judged.object),
        "digest": judged.object.digest,
        "verdict": judged.verdict.value,
        "since": _text(judged.since),
        "why": judged.why,
        "errors": [
            {
                "path": one.path,
                "line": one.line,
                "column": one.column,
                "why": one.why,
            }
            for one in judged.mistakes
        ],
        "gone": _text(judged.gone),
        "problem": judged.problem,
        "wouldChange": None
        if judged.would_change is None
        else {
            "count": len(judged.would_change),
            "containers": [_change(one) for one in judged.would_change[:_MOST]],
        },
    }


def _change(one: WouldChange) -> JsonObject:
    return {
        "id": one.id,
        "title": one.title,
        "now": {"cpus": str(one.now.cpus), "mems": str(one.now.mems)},
        "then": {"cpus": str(one.then.cpus), "mems": str(one.then.mems)},
    }


def _adjustments(judged: JudgedAdjustments, containers: KnowsContainers) -> JsonObject:
    adjusted: dict[str, list[str]] = {}
    for key, entry in containers.ledger.entries.items():
        if entry.spec.adjusted is not None:
            adjusted.setdefault(entry.spec.adjusted.name, []).append(key)
    return {
        "digest": judged.digest,
        "verdict": judged.verdict.value,
        "since": _text(judged.since),
        "errors": dict(judged.errors),
        "problem": judged.problem,
        "objects": [
            _adjustment(one, adjusted.get(one.object.name, ()))
            for one in judged.adjustments
        ],
    }


def _adjustment(judged: JudgedAdjustment, containers: Sequence[str]) -> JsonObject:
    return {
        "object": _object(judged.object),
        "verdict": judged.verdict.value,
        "errors": dict(judged.errors),
        "containers": list(containers),
    }


def _object(found: ClusterObject) -> JsonObject:
    return {
        "kind": found.kind,
        "name": found.name,
        "namespace": found.namespace,
        "uid": found.uid,
        "generation": found.generation,
    }


def _text(seconds: float) -> str:
    return time_text(int(seconds * _SECOND))
