"""How Hypothesis runs here: machines are slow and shared, laws are not."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A fresh clone builds Hypothesis' character table on first use, which takes seconds.
settings.register_profile(
    "whole", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# `make check`: a law that is broken for good shows in a few examples.
settings.register_profile("quick", settings.get_profile("whole"), max_examples=15)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "whole"))
