"""Conditions of Kubernetes, with their time of transition kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from nri_resmgr.values.documents import JsonObject
from nri_resmgr.values.shorten import shortened

# The API server accepts 32 KiB; a person reads the first lines.
_LONGEST: Final = 1024
"""Characters of a message."""


class Condition(msgspec.Struct, frozen=True):
    """A condition as `metav1.Condition` has it, but for the times.

    Attributes:
        kind: Its ``type``.
        is_true: Its ``status``; None for ``Unknown``.
        reason: A word in CamelCase.
        message: A sentence.
    """

    kind: str
    is_true: bool | None
    reason: str
    message: str = ""

    @property
    def status(self) -> str:
        """``True``, ``False`` or ``Unknown``."""
        return "Unknown" if self.is_true is None else str(self.is_true)


def conditions_in(status: object) -> list[Mapping[str, object]]:
    """Return the conditions in the status of an object; none where it has no list."""
    found = status.get("conditions") if isinstance(status, Mapping) else None
    rows = found if isinstance(found, list) else []
    return [one for one in rows if isinstance(one, Mapping)]


def render_conditions(
    conditions: Iterable[Condition],
    before: Iterable[Mapping[str, object]],
    generation: int,
    now: str,
) -> list[JsonObject]:
    """Render conditions for the status of an object.

    Args:
        conditions: The conditions, in the order in which people should read them.
        before: The conditions that the object has; the time of transition of one
            whose status is the same stays.
        generation: The observed generation.
        now: RFC 3339.
    """
    former = {str(one.get("type")): one for one in before}
    rendered = []
    for one in conditions:
        last = former.get(one.kind, {})
        stays = last.get("status") == one.status
        rendered.append(
            {
                "type": one.kind,
                "status": one.status,
                "reason": one.reason,
                "message": shortened(one.message, _LONGEST),
                "observedGeneration": generation,
                "lastTransitionTime": last.get("lastTransitionTime", now)
                if stays
                else now,
            }
        )
    return rendered
