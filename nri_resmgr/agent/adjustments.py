"""Adjustments of containers: watched, handed over, and their status written.

The custom resource and its status are those of CRI Resource Manager, which has no
status subresource: a status is a change of the object as any other, and all nodes see
it. So specifications are compared, not generations, and a status is written only if it
differs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import yaml

from nri_resmgr.agent.api import (
    ApiClient,
    ApiError,
    ApiObject,
    Changed,
    News,
    Ref,
    Removed,
    Resource,
    Synced,
    Target,
    Unreadable,
)
from nri_resmgr.agent.api.errors import KindMissing, ObjectMissing
from nri_resmgr.agent.daemon_state import JudgedAdjustment
from nri_resmgr.agent.watch_problems import WatchProblems
from nri_resmgr.log import Logger
from nri_resmgr.values.documents import JsonObject

log = Logger(__name__)

ADJUSTMENTS: Final = Resource(
    "criresmgr.intel.com", "v1alpha1", "adjustments", "Adjustment", True
)


class AdjustmentsWatch:
    """Watches all adjustments of a namespace: their scope is evaluated on the node.

    Args:
        api: The client.
        namespace: Of the adjustments.
        changed: Called after each change.
        note_unusable: Called for each version of an adjustment that cannot be read.

    Attributes:
        found: The adjustments by name; None until they were listed.
        problems: Why they cannot be watched now.
    """

    def __init__(
        self,
        api: ApiClient,
        namespace: str,
        changed: Callable[[], None],
        note_unusable: Callable[[], None] = lambda: None,
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._changed = changed
        self._note_unusable = note_unusable
        self._seen: dict[str, ApiObject] = {}
        self.found: Mapping[str, ApiObject] | None = None
        self.problems = WatchProblems()

    async def run(self) -> None:
        """Watch until cancelled."""
        self._seen = {}  # after a failure: what was removed meanwhile is not reported
        await self._api.watch(Target(ADJUSTMENTS, self._namespace), self._receive)

    def _receive(self, news: News) -> None:
        self.problems.note("adjustments", news)
        match news:
            case Changed(found):
                self._seen[found.name] = found
            case Removed(name, _):
                self._seen.pop(name, None)
            case Unreadable(name, _, error):
                log.error("agent.bad-adjustment", name=name, why=str(error))
                self._note_unusable()
                return
            case Synced():
                self.found = self._seen
        if self.found is not None:
            self._changed()


def text_of(found: Mapping[str, ApiObject]) -> str:
    """Return adjustments as the text of the spool file, sorted by name."""
    rows = [
        {
            "apiVersion": one.resource.api_version,
            "kind": one.resource.kind,
            "metadata": {"name": one.name, "namespace": one.namespace, "uid": one.uid},
            "spec": one.body.get("spec"),
        }
        for _, one in sorted(found.items())
    ]
    return yaml.safe_dump(rows, sort_keys=False)


def patch_of(
    found: ApiObject, judged: JudgedAdjustment, node: str
) -> JsonObject | None:
    """Return the merge patch of an adjustment's status; None if it is right.

    Args:
        found: The adjustment as it was seen last.
        judged: The daemon's verdict on it.
        node: Name of the node.
    """
    present = _entry_of(found, node)
    if judged.verdict == "ignored":
        return None if present is None else {"status": {"nodes": {node: None}}}
    errors = dict(judged.errors)
    before = present.get("errors") if present is not None else None
    if before == errors:
        return None
    # A merge patch adds keys: those that are gone have to be removed by name.
    gone = dict.fromkeys(before.keys() - errors.keys()) if before else {}
    return {"status": {"nodes": {node: {"errors": {**gone, **errors}}}}}


async def write_status(
    api: ApiClient,
    found: Mapping[str, ApiObject],
    judged: tuple[JudgedAdjustment, ...],
    node: str,
) -> None:
    """Write the node's entry into each adjustment whose entry differs.

    Raises:
        ApiError: One could not be written; the others were tried.
    """
    failure: ApiError | None = None
    for one in judged:
        adjustment = found.get(one.object.name)
        if adjustment is None or adjustment.uid != one.object.uid:
            continue
        if (patch := patch_of(adjustment, one, node)) is None:
            continue
        ref = Ref(ADJUSTMENTS, adjustment.name, adjustment.namespace)
        try:
            await api.merge_patch(ref, patch)
        except (ObjectMissing, KindMissing):
            continue
        except ApiError as error:
            failure = error
        await asyncio.sleep(0)
    if failure is not None:
        raise failure


def _entry_of(found: ApiObject, node: str) -> JsonObject | None:
    status = found.body.get("status")
    nodes = status.get("nodes") if isinstance(status, Mapping) else None
    entry = nodes.get(node) if isinstance(nodes, Mapping) else None
    return dict(entry) if isinstance(entry, Mapping) else None
