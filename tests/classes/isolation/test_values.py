"""What CRI-O's isolation annotations may say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nri_resmgr.classes.isolation.requests import IrqBalancing
from nri_resmgr.classes.isolation.values import (
    BadIsolation,
    read_disabled,
    read_enabled,
    read_governor,
    read_irq_balancing,
    read_wake_latency,
)

Reader = Callable[[str], object]


@pytest.mark.parametrize(
    ("read", "text", "found"),
    [
        (read_disabled, "disable", True),
        (read_disabled, "true", True),
        (read_disabled, "enable", False),
        (read_disabled, "false", False),
        (read_enabled, "enable", True),
        (read_enabled, "disable", False),
        (read_irq_balancing, "disable", IrqBalancing.DISABLED),
        (read_irq_balancing, "true", IrqBalancing.DISABLED),
        (read_irq_balancing, "housekeeping", IrqBalancing.HOUSEKEEPING),
        (read_irq_balancing, "enable", IrqBalancing.ENABLED),
        (read_irq_balancing, "false", IrqBalancing.ENABLED),
        (read_governor, "performance", "performance"),
        (read_wake_latency, "enable", "0"),
        (read_wake_latency, "disable", "n/a"),
        (read_wake_latency, "max_latency:10", "10"),
    ],
)
def test_valid_values_are_read(read: Reader, text: str, found: object) -> None:
    assert read(text) == found


@pytest.mark.parametrize(
    ("read", "text", "complaint"),
    [
        (read_disabled, "Disable", "expected disable or enable, not 'Disable'"),
        (read_disabled, "", "expected disable or enable, not ''"),
        (read_enabled, "true", "expected enable or disable, not 'true'"),
        (
            read_irq_balancing,
            "off",
            "expected disable, housekeeping or enable, not 'off'",
        ),
        (
            read_governor,
            "../x",
            "expected a scaling governor such as performance, not '../x'",
        ),
        (
            read_wake_latency,
            "max_latency:x",
            "expected enable, disable or max_latency:MICROSECONDS, not 'max_latency:x'",
        ),
        (
            read_wake_latency,
            "",
            "expected enable, disable or max_latency:MICROSECONDS, not ''",
        ),
        (
            read_disabled,
            "x" * 1000,
            f"expected disable or enable, not {'x' * 80!r}",
        ),
    ],
)
def test_other_values_are_mistakes(read: Reader, text: str, complaint: str) -> None:
    with pytest.raises(BadIsolation) as raised:
        read(text)

    assert str(raised.value) == complaint
