"""State of the limits of fast memory: updated by their applier, shown by `explain`."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from nri_resmgr.app.classes.problems import ClassProblems
from nri_resmgr.policy.events import ContainerSpec


class TopTierHost:
    """State of the limits of containers.

    Attributes:
        applied: Containers whose limit was written.
        ineffective: Why the limit of a container has no effect, by id.
        problems: Failed writes.
    """

    def __init__(self) -> None:
        self.applied: set[str] = set()
        self.ineffective: dict[str, str] = {}
        self.problems = ClassProblems("toptier")

    def keep_only(self, containers: Collection[str]) -> None:
        """Drop the state of other containers."""
        self.applied.intersection_update(containers)
        for gone in self.ineffective.keys() - set(containers):
            del self.ineffective[gone]

    def sentences(self, spec: ContainerSpec) -> Iterator[str]:
        """Describe the limit of a container that has one with an effect."""
        limit = spec.preferences.top_tier_limit
        if limit is None or spec.id in self.ineffective:
            return
        if why := self.why_not(spec):
            state = f"not in force: {why}"
        else:
            state = "written" if spec.id in self.applied else "not written yet"
        is_own = limit == spec.own_preferences.top_tier_limit
        by = "annotation" if is_own or not spec.adjusted else "adjustment"
        yield f"soft limit of fast memory {limit} bytes, by {by}, {state}"

    def why_not(self, spec: ContainerSpec) -> str:
        """Return why the limit of a container is not in force; empty if unknown."""
        ineffective = self.ineffective.get(spec.id, "")
        return ineffective or self.problems.present.get(spec.title, "")
