"""These tests are about the guest; test_guest.py starts them there."""

from __future__ import annotations

import os

import pytest

if "NRI_RESMGR_TEST_GUEST" not in os.environ:
    collect_ignore_glob = ["*"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "numa: wants the guest's 16 CPUs and 5 nodes")
