"""What looks at containers' cgroups showed, as plain data."""

from __future__ import annotations

from typing import Any, TypeAlias

from nri_resmgr.app.verification.verifier import Verification
from nri_resmgr.control.times import time_text

Data: TypeAlias = dict[str, Any]


def verification_of(found: Verification | None) -> Data | None:
    """Say when all cgroups were looked at, and what came of it; None if nobody does."""
    if found is None:
        return None
    counts = found.counts()
    return {
        "intervalSeconds": found.options.interval,
        "repairs": found.options.repairs,
        "rounds": found.rounds,
        "last": time_text(found.ended),
        "containers": {word.value: counts[word] for word in sorted(counts)},
    }


def verified_container(found: Verification | None, container: str) -> Data | None:
    """Say what the last look at a container showed; None where nobody looks."""
    if found is None:
        return None
    finding = found.finding_of(container)
    return {
        "verdict": finding.verdict.value,
        "differences": [
            {"kind": one.kind.value, "wanted": one.wanted, "found": one.found}
            for one in finding.differences
        ],
        "why": finding.why,
        "repairs": found.repairs.attempts_of(container),
        "abandoned": found.repairs.is_abandoned(container),
    }
