"""Adjustments of the cluster: put in force, and the verdict on them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from itertools import islice
from typing import Final

import msgspec

from nri_resmgr.app.adjustments.adjustment import Adjustment
from nri_resmgr.app.adjustments.judgement import Judgement
from nri_resmgr.app.adjustments.read import ReadAdjustment
from nri_resmgr.app.configuration.cluster import (
    JudgedAdjustment,
    JudgedAdjustments,
    Verdict,
)
from nri_resmgr.app.plugin.changes.adjusting import adjust
from nri_resmgr.app.plugin.node_policy import NodePolicy
from nri_resmgr.daemon.cluster.reading import REQUEST, Reading, for_this_node
from nri_resmgr.log import Logger
from nri_resmgr.spool import ADJUSTMENTS
from nri_resmgr.values import ResmgrError

log = Logger(__name__)

# Of adjustments that conflict, or that the node has no room for.
_RETRY: Final = 5.0  # seconds

_LOGGED: Final = 20
"""Adjustments, and mistakes in them, that a line of the log has."""

_IGNORED: Final = "the whole update is ignored because of {}; what was in force stays"


class ClusterAdjustments:
    """Has the policy adjust containers, and keeps the verdict.

    Args:
        folder: Path of the spool folder.

    Attributes:
        judged: The verdict on the last ones; None before the first.
        retry_at: When rejected ones are tried again, by the monotonic clock.
    """

    def __init__(self, folder: str) -> None:
        self.judged: JudgedAdjustments | None = None
        self.retry_at = math.inf
        self._path = f"{folder}/{ADJUSTMENTS}"

    def take(self, policy: NodePolicy, reading: Reading) -> bool:
        """Adjust containers if the adjustments are new; return whether they were."""
        found = reading.adjustments
        if isinstance(found, ResmgrError):
            self._note_unreadable(found)
            return False
        before, digest = self.judged, found.digest if found else ""
        if before is None and found is None:
            return False
        is_known = before is not None and before.digest == digest
        if before is not None and before.problem:
            self.judged = msgspec.structs.replace(before, problem="")
        if is_known and self.retry_at > time.monotonic():
            return False
        read, errors = reading.objects.read, reading.objects.errors
        judged = Judgement(errors=errors, involved={key: (key,) for key in errors})
        self.retry_at = math.inf
        if not errors:
            judged = adjust(policy, for_this_node(read))
            if judged.errors:
                # Containers come and go, and take the reason along.
                self.retry_at = time.monotonic() + _RETRY
        in_force = policy.specs.adjustments.present
        self.judged = _judged(digest, read, judged, in_force, before)
        if self.judged.since != (before and before.since):
            _log(self.judged)
        return not is_known

    def _note_unreadable(self, error: ResmgrError) -> None:
        why, judged = str(error), self.judged
        if judged is None:
            errors = {REQUEST: why}
            judged = JudgedAdjustments("", Verdict.REJECTED, time.time(), errors=errors)
        if judged.problem != why:
            self.judged = msgspec.structs.replace(judged, problem=why)
            log.error("cluster.file-unreadable", path=self._path, why=why)


def _judged(
    digest: str,
    read: Sequence[ReadAdjustment],
    judged: Judgement,
    in_force: Sequence[Adjustment],
    before: JudgedAdjustments | None,
) -> JudgedAdjustments:
    errors = dict(judged.errors)
    verdict = Verdict.REJECTED if errors else Verdict.ACCEPTED
    by_name: dict[str, dict[str, str]] = {}
    for key, names in judged.involved.items():
        for name in names:
            by_name.setdefault(name, {})[key] = errors[key]
    causes = ", ".join(sorted(by_name)) or "an error"

    def of(one: ReadAdjustment) -> JudgedAdjustment:
        own = by_name.get(one.object.name, {})
        if errors and not own and one.adjustment not in (None, *in_force):
            # Else its status would be that of one in force.
            own = {REQUEST: _IGNORED.format(causes)}
        is_here = one.adjustment is not None or one.why
        return JudgedAdjustment(
            one.object, verdict if is_here else Verdict.IGNORED, own
        )

    found = JudgedAdjustments(
        digest, verdict, time.time(), tuple(map(of, read)), errors
    )
    if before is not None:
        same = msgspec.structs.replace(found, since=before.since)
        return same if same == before else found
    return found


def _log(judged: JudgedAdjustments) -> None:
    names = [one.object.name for one in judged.adjustments[:_LOGGED]]
    number = len(judged.adjustments)
    if judged.errors:
        errors = dict(islice(judged.errors.items(), _LOGGED))
        log.error("adjustments.rejected", number=number, names=names, errors=errors)
    else:
        log.info("adjustments.accepted", number=number, names=names)
