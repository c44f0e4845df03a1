"""How Hypothesis runs here: machines are slow and shared, laws are not."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A fresh clone builds Hypothesis' character table on first use, which takes seconds.
settings.register_profile(
    "shared-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shared-machine")
