"""Events of Kubernetes on pods: refusals, and grants that were lost.

Pure: lines of the daemon's event stream and times in, calls of the API out. Equal ones
are one event whose series counts; its count is written at most once in `SERIES_PAUSE`.
A node writes at most `MOST_WRITES` in a minute: a storm of refusals must not load the
API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Final

import attrs
import msgspec

from nri_resmgr.values.documents import JsonObject
from nri_resmgr.values.printable import printable
from nri_resmgr.values.sha256 import sha256_of
from nri_resmgr.values.shorten import shortened

CONTROLLER: Final = "nri-resmgr"
"""``reportingController`` of all events."""

SERIES_PAUSE: Final = 300.0
"""Seconds between two writes of the count of equal events."""

MOST_WRITES: Final = 10
"""Writes of a node in a minute; the series of others is written later."""

_MINUTE: Final = 60.0
_KEPT: Final = 3600.0
"""Seconds after which the API server has removed an event, by its default."""

_MOST_KEPT: Final = 500
_LONGEST_NOTE: Final = 1000  # the API takes 1,024 bytes
_NAME: Final = 200  # of at most 253 characters, with the suffix


class Occurrence(msgspec.Struct, frozen=True):
    """Something that has happened to a pod.

    Attributes:
        namespace: Of the pod.
        pod: Its name.
        pod_uid: Its UID.
        container: Name of its container; empty for the pod.
        reason: A word in CamelCase.
        note: A sentence.
    """

    namespace: str
    pod: str
    pod_uid: str
    container: str
    reason: str
    note: str

    @property
    def name(self) -> str:
        """The name of the event: the same for equal occurrences."""
        parts = (self.pod_uid, self.container, self.reason, self.note)
        digest = sha256_of("\0".join(parts).encode(errors="replace"))
        return f"{self.pod[:_NAME]}.{digest[:16]}"


class EventWrite(msgspec.Struct, frozen=True):
    """A call of the API.

    Attributes:
        namespace: Of the event.
        name: Its name.
        body: The whole event, or the patch of its series.
        is_new: Whether it is created; else patched.
    """

    namespace: str
    name: str
    body: JsonObject
    is_new: bool


@attrs.define(eq=False)
class _Series:
    occurrence: Occurrence
    first: str
    last: str
    count: int = 0
    written_count: int = 0
    written_at: float = -inf
    created: bool = False


class PodEvents:
    """Collects occurrences, and decides what is written.

    Args:
        node: Name of the node.
        instance: ``reportingInstance``: which agent reports it.
    """

    def __init__(self, node: str, instance: str) -> None:
        self._node, self._instance = node, instance
        self._series: dict[str, _Series] = {}
        self._writes: list[float] = []  # times of the last minute
        self.dropped = 0

    def note(self, occurrence: Occurrence, now: str) -> None:
        """Note an occurrence.

        Args:
            occurrence: It.
            now: RFC 3339 with microseconds.
        """
        key = f"{occurrence.namespace}/{occurrence.name}"
        series = self._series.pop(key, None)
        if series is None:
            series = _Series(occurrence, now, now)
            if len(self._series) >= _MOST_KEPT:
                del self._series[next(iter(self._series))]
                self.dropped += 1
        series.last, series.count = now, series.count + 1
        self._series[key] = series  # the latest last

    def due(self, at: float) -> list[EventWrite]:
        """Return what is to be written now, and take it as written.

        Args:
            at: Monotonic seconds.
        """
        self._writes = [one for one in self._writes if at - one < _MINUTE]
        writes = []
        for key, series in list(self._series.items()):
            if series.created and at - series.written_at > _KEPT:
                del self._series[key]
            elif len(self._writes) >= MOST_WRITES:
                break
            elif self._is_due(series, at):
                self._writes.append(at)
                writes.append(self._write(series))
                series.written_at, series.written_count = at, series.count
                series.created = True
        return writes

    def failed(self, write: EventWrite) -> None:
        """Note that a write failed: it is written again when its series is due."""
        if (series := self._series.get(f"{write.namespace}/{write.name}")) is not None:
            series.written_count = 0
            series.created = series.created and not write.is_new

    def _is_due(self, series: _Series, at: float) -> bool:
        if not series.created:
            return at - series.written_at >= _MINUTE
        changed = series.count != series.written_count
        return changed and at - series.written_at >= SERIES_PAUSE

    def _write(self, series: _Series) -> EventWrite:
        occurrence = series.occurrence
        counted = {"count": series.count, "lastObservedTime": series.last}
        if series.created:
            body: JsonObject = {"series": counted}
        else:
            body = self._whole(series)
            if series.count > 1:
                body["series"] = counted
        return EventWrite(
            occurrence.namespace, occurrence.name, body, not series.created
        )

    def _whole(self, series: _Series) -> JsonObject:
        occurrence = series.occurrence
        regarding = {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": occurrence.namespace,
            "name": occurrence.pod,
            "uid": occurrence.pod_uid,
        }
        if occurrence.container:
            regarding["fieldPath"] = f"spec.containers{{{occurrence.container}}}"
        note = printable(f"node {self._node}: {occurrence.note}")
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": occurrence.name, "namespace": occurrence.namespace},
            "regarding": regarding,
            "related": {"apiVersion": "v1", "kind": "Node", "name": self._node},
            "reason": occurrence.reason,
            "note": shortened(note, _LONGEST_NOTE),
            "type": "Warning",
            "action": "Place",
            "eventTime": series.first,
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance,
        }


# Reasons that people look for, by the kind of the daemon's event.
_REASONS: Final = {
    "container.refused": "ResourcesRefused",
    "container.drifted": "PinningDrifted",
}
_LOSSES: Final = {"fell-back": "ExclusiveCpusLost"}


def occurrences_of(
    event: Mapping[str, object], uids: Mapping[str, str]
) -> list[Occurrence]:
    """Return what an event of the daemon means for pods.

    Args:
        event: A line of ``GET /v1/events``.
        uids: The UID of each pod by ``namespace/name``.
    """
    found = []
    if (reason := _REASONS.get(str(event.get("kind")))) is not None:
        found.append((str(event.get("title", "")), reason, str(event.get("why", ""))))
    containers = event.get("containers")
    for one in containers if isinstance(containers, list) else ():
        if (reason := _LOSSES.get(str(one.get("rule")))) is not None:
            detail = str(one.get("detail", ""))
            why = f"{one.get('title')} shares CPUs {one.get('cpus', '')}. {detail}"
            found.append((str(one.get("title", "")), reason, why.strip()))
    return [
        occurrence
        for title, reason, why in found
        if (occurrence := _occurrence(title, reason, why, event, uids)) is not None
    ]


def _occurrence(
    title: str,
    reason: str,
    note: str,
    event: Mapping[str, object],
    uids: Mapping[str, str],
) -> Occurrence | None:
    parts = title.split("/")
    if len(parts) < 2:  # noqa: PLR2004 - namespace and pod
        return None
    namespace, pod, container = (*parts, "")[:3]
    uid = str(event.get("podUid") or uids.get(f"{namespace}/{pod}", ""))
    return Occurrence(namespace, pod, uid, container, reason, note)
