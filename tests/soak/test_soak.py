"""A busy daemon does not grow: the short form of ``make soak``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.soak import Figures, soak

# The history is full after 20,000; what comes then must go, too: some 500 pods.
EVENTS = 24_000
EVERY = 4_000

SLACK = 1.03
# The number of objects of a type varies with the running containers. One left behind by
# each pod between two figures would be more.
FEW = 300


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_busy_daemon_does_not_grow(tmp_path: Path) -> None:
    *_, before, after = soak(tmp_path, EVENTS, EVERY)

    assert after.refused > before.refused > 0
    assert grown(before, after) == {}
    assert after.size.resident <= SLACK * before.size.resident
    assert after.series <= SLACK * before.series
    assert after.size.files <= before.size.files + 2
    assert after.size.threads <= before.size.threads + 2


def grown(before: Figures, after: Figures) -> dict[str, int]:
    """Return the types with more objects than before."""
    known = before.objects
    return {
        kind: count - known.get(kind, 0)
        for kind, count in after.objects.items()
        if count > SLACK * known.get(kind, 0) + FEW
    }
