"""Prometheus and its tool for rules, out of Debian's packages."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from tests.real_host.absent import give_up
from tests.real_host.debian import PackageUnavailable, Suite

_SUITE: Final = "trixie"


def prometheus() -> Path:
    """Return the server, or skip the test with the reason."""
    return _programs() / "prometheus"


def promtool() -> Path:
    """Return the tool, or skip the test with the reason."""
    return _programs() / "promtool"


@cache
def _programs() -> Path:
    try:
        return Suite.of(_SUITE).fetch("prometheus", "promtool") / "usr" / "bin"
    except PackageUnavailable as reason:
        give_up(f"prometheus: {reason}")
