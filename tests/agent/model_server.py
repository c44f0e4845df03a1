"""A model of an API server's lists and watches: the oracle of the watch machine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from nri_resmgr.agent.api.answers import Answer

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
EXPIRED: Final = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "message": "too old resource version: 1 (2)",
    "reason": "Expired",
    "code": 410,
}
_KIND: Final = {"apiVersion": "config.nri/v1alpha1", "kind": "BalloonsPolicy"}

Json = dict[str, Any]


class ModelServer:
    """All objects of one kind in one namespace, and what happened to them.

    Attributes:
        objects: By name.
        compacted: Changes up to this version are forgotten.
        version: Of the last change.
    """

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.version = 100
        self.compacted = 0
        self._born = 0
        self._log: list[tuple[int, str, Json]] = []
        self._snapshots: dict[int, list[Json]] = {}

    def change(self, name: str) -> None:
        """Create an object, or change its specification."""
        before = self.objects.get(name)
        if before is None:
            self._born += 1
            uid, generation = f"uid-{self._born}", 1
        else:
            uid = before["metadata"]["uid"]
            generation = before["metadata"]["generation"] + 1
        self._write(name, uid, generation, ADDED if before is None else MODIFIED)

    def touch(self, name: str) -> None:
        """Change the status of an object, if there is one."""
        if (before := self.objects.get(name)) is not None:
            found = before["metadata"]
            self._write(name, found["uid"], found["generation"], MODIFIED)

    def delete(self, name: str) -> None:
        """Delete an object, if there is one."""
        if (before := self.objects.pop(name, None)) is not None:
            self.version += 1
            found = {**before["metadata"], "resourceVersion": str(self.version)}
            self._log.append((self.version, DELETED, {**before, "metadata": found}))

    def compact(self) -> None:
        """Forget all changes, and the rest of lists that have begun."""
        self.compacted = self.version
        self._log = []
        self._snapshots = {}

    def _write(self, name: str, uid: str, generation: int, what: str) -> None:
        self.version += 1
        metadata = {
            "name": name,
            "namespace": "kube-system",
            "uid": uid,
            "generation": generation,
            "resourceVersion": str(self.version),
        }
        spec = {"text": "ä\n" * (generation % 3)}
        found = {**_KIND, "metadata": metadata, "spec": spec}
        self.objects[name] = found
        self._log.append((self.version, what, found))

    def list(self, query: Mapping[str, str]) -> Answer:
        """Answer a list, or a part of one."""
        version, begin = self.version, 0
        if "continue" in query:
            version, begin = map(int, query["continue"].split("/"))
            if version not in self._snapshots:
                return Answer(410, json.dumps(EXPIRED).encode())
        items = self._snapshots.setdefault(version, list(self.objects.values()))
        items = [item for item in items if _selects(query, item)]
        end = begin + int(query.get("limit", len(items) or 1))
        metadata = {"resourceVersion": str(version)}
        if end < len(items):
            metadata["continue"] = f"{version}/{end}"
        page = {"kind": "List", "metadata": metadata, "items": items[begin:end]}
        return Answer(200, json.dumps(page).encode())

    def events(self, query: Mapping[str, str], since: int) -> Iterator[bytes]:
        """Return what a watch has to say that has sent all up to a version."""
        if since < self.compacted:
            yield line("ERROR", EXPIRED)
            return
        for version, what, found in self._log:
            if version > since and _selects(query, found):
                yield line(what, found)

    def bookmark(self) -> bytes:
        """Return a bookmark of the present version."""
        metadata = {"resourceVersion": str(self.version), "creationTimestamp": None}
        return line("BOOKMARK", {**_KIND, "metadata": metadata, "spec": {}})


def line(what: str, found: object) -> bytes:
    """Return a line of a watch."""
    return json.dumps({"type": what, "object": found}).encode() + b"\n"


def _selects(query: Mapping[str, str], found: Json) -> bool:
    selector = query.get("fieldSelector", "")
    name = found["metadata"]["name"]
    return not selector or selector == f"metadata.name={name}"
