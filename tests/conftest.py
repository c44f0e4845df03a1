"""The order of tests, and how Hypothesis runs: machines are slow and shared."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# A fresh clone builds Hypothesis' character table on first use, which takes seconds.
settings.register_profile(
    "whole", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# `make check`: a law that is broken for good shows in a few examples.
settings.register_profile("quick", settings.get_profile("whole"), max_examples=15)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "whole"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the emulated machine first: all other tests fit beside it."""
    items.sort(key=lambda item: item.get_closest_marker("qemu") is None)
