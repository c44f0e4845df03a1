"""The log of these tests: short, because tracebacks by rich take a second each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def _plain_log() -> Iterator[None]:
    plain = structlog.dev.plain_traceback
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=plain),
        ]
    )
    yield
    structlog.reset_defaults()
