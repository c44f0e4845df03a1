"""These tests are about a guest with systemd; test_boot.py starts them there."""

from __future__ import annotations

import os

if "NRI_RESMGR_TEST_GUEST" not in os.environ:
    collect_ignore_glob = ["*"]
