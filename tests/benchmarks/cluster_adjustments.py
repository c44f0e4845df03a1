"""An adjustment for all nodes of a cluster, and the time until all have reported."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from nri_resmgr.agent.object_status import MOST_NODES, entries_in
from tests.benchmarks.cluster import NAMESPACE, Cluster
from tests.benchmarks.stand_in_daemon import KNOWN
from tests.benchmarks.tables import print_cells, print_header, rounded
from tests.real_host.patience import wait_until

_NAME: Final = "all"
_API: Final = "criresmgr.intel.com/v1alpha1"
_PATH: Final = f"/apis/{_API}/namespaces/{NAMESPACE}/adjustments/{_NAME}"
_UNKNOWN: Final = "silver"
_PATIENCE: Final = 900.0  # seconds: pauses after conflicts grow up to five minutes
_LOOK: Final = 0.2  # seconds between two looks at the adjustment
_LOOK_AT_ALL: Final = 1.0  # the same, at all nodes: a list of all is a load, too


@attrs.frozen
class Times:
    """How long the nodes took to report on a change of the adjustment.

    Attributes:
        change: What was done with it.
        entries: Number of entries of nodes in its status, afterwards.
        until_entries: Seconds until the last of them was there and right; None where it
            has gone with the adjustment.
        until_nodes: Seconds until each node's own object was right.
    """

    change: str
    entries: int
    until_entries: float | None
    until_nodes: float


class AdjustmentForAll:
    """Creates, changes and deletes one adjustment, each time waiting for all nodes.

    Args:
        where: The cluster.
        folder: For the file to apply.
        agents: Number of nodes with an agent.
    """

    def __init__(self, where: Cluster, folder: Path, agents: int) -> None:
        self._where = where
        self._file = folder / "adjustment.json"
        self._agents = agents
        self._times: list[Times] = []

    def phases(self) -> Mapping[str, Callable[[], None]]:
        """Return what is to be done in turn, by its name."""
        return {
            "an adjustment for all is created": self._create,
            "all reject its change": self._change,
            "it is deleted": self._delete,
        }

    def print_times(self) -> None:
        """Print the table of times."""
        print_header(
            f"an adjustment for {self._agents} nodes",
            "entries in its status",
            "until all entries are right, s",
            "until all `NodeResourceManager` objects are right, s",
        )
        for one in self._times:
            until = one.until_entries
            print_cells(
                one.change,
                str(one.entries),
                "" if until is None else rounded(until),
                rounded(one.until_nodes),
            )

    def _create(self) -> None:
        self._put("created", KNOWN, "True")

    def _change(self) -> None:
        # A change on which the verdict is the same as before is no write at all.
        self._put("changed, and rejected by all", _UNKNOWN, "False")

    def _put(self, change: str, rdt: str, status: str) -> None:
        body = {
            "apiVersion": _API,
            "kind": "Adjustment",
            "metadata": {"name": _NAME, "namespace": NAMESPACE},
            "spec": {"scope": [{}], "classes": {"rdt": rdt}},
        }
        self._file.write_text(json.dumps(body))
        begin = time.monotonic()
        self._where.apply(self._file)
        wanted = min(self._agents, MOST_NODES)

        def entries_are_right() -> bool:
            time.sleep(_LOOK)
            entries = self._entries().values()
            right = [one for one in entries if bool(one["errors"]) == (rdt != KNOWN)]
            return len(right) == len(entries) == wanted

        what = f"entries of {wanted} nodes in the adjustment"
        wait_until(entries_are_right, what, _PATIENCE)
        until_entries = time.monotonic() - begin
        self._await_nodes(status)
        self._note(change, begin, until_entries)

    def _delete(self) -> None:
        begin = time.monotonic()
        kubectl = self._where.control_plane.kubectl.within(NAMESPACE)
        kubectl("delete", "adjustment", _NAME)
        self._await_nodes("")
        self._note("deleted", begin, None)

    def _note(self, change: str, begin: float, until_entries: float | None) -> None:
        until_nodes = time.monotonic() - begin
        entries = len(self._entries())
        self._times.append(Times(change, entries, until_entries, until_nodes))

    def _entries(self) -> Mapping[str, Any]:
        body = self._where.control_plane.ask("GET", _PATH).body
        return entries_in(body.get("status")) if "spec" in body else {}

    def _await_nodes(self, status: str) -> None:
        def all_are_right() -> bool:
            time.sleep(_LOOK_AT_ALL)
            found = self._where.node_statuses().values()
            right = [one for one in found if _adjusted(one) == status]
            return len(right) == self._agents

        wait_until(all_are_right, "all nodes to have reported", _PATIENCE)


def _adjusted(status: Mapping[str, Any]) -> str:
    """Return a node's condition of adjustments; empty where it has none."""
    for one in status.get("conditions", ()):
        if one["type"] == "AdjustmentsApplied":
            return str(one["status"])
    return ""
