"""Metrics of what the looks at containers' cgroups showed."""

from __future__ import annotations

from collections.abc import Iterator

from nri_resmgr.app.metrics import table
from nri_resmgr.app.metrics.text import Series, single
from nri_resmgr.app.verification.verifier import Verification


def series_of_verification(verification: Verification) -> Iterator[Series]:
    """Yield the verdicts, the repairs, and how the last round went."""
    counts = verification.counts()
    yield Series(table.VERDICTS, {(word.value,): n for word, n in counts.items()})
    yield single(table.DRIFT_REPAIRS, verification.repairs.sent)
    yield single(table.DRIFT_ABANDONED, verification.repairs.abandoned)
    if verification.rounds:
        yield single(table.VERIFIED, verification.ended / 1e9)
        yield single(table.VERIFICATION_SECONDS, verification.seconds)
