"""The kinds of events that the control socket has."""

from __future__ import annotations

from typing import Literal, TypeAlias

EventKind: TypeAlias = Literal[
    "annotation.ineffective",
    "claim.prepared",
    "claim.returned",
    "claim.wanted",
    "cold-start.ended",
    "configuration.accepted",
    "configuration.rejected",
    "configuration.tried",
    "container.confined",
    "container.drifted",
    "container.offline",
    "container.placed",
    "container.refused",
    "container.released",
    "container.removed",
    "container.started",
    "container.unreadable",
    "container.updated",
    "container.would-change",
    "drift.abandoned",
    "drift.cleared",
    "drift.contested",
    "host.abandoned",
    "host.drifted",
    "host.not-written",
    "node.rebalanced",
    "node.synchronized",
    "pod.overhead",
    "pod.placed",
    "pod.removed",
    "resource.published",
    "resource.withdrawn",
    "session.ended",
    "session.failed",
    "session.registered",
    "session.synchronized",
]
"""A name, which docs/control.md explains. The log has most of them, too."""
