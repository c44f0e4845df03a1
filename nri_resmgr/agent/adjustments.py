"""Adjustments of containers: watched, and handed over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import yaml

from nri_resmgr.agent.api import (
    ApiClient,
    ApiObject,
    Changed,
    News,
    Removed,
    Resource,
    Synced,
    Target,
    Unreadable,
)
from nri_resmgr.agent.watch_problems import WatchProblems
from nri_resmgr.log import Logger

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
