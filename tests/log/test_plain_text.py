"""Lines without colours look as structlog's own do."""

from __future__ import annotations

from typing import Any, Final

import structlog
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.log.output import render_plain

CONSOLE: Final = structlog.dev.ConsoleRenderer(
    colors=False, exception_formatter=structlog.dev.plain_traceback
)
NAMES: Final = st.text("abcxyz_", min_size=1, max_size=8)
TEXTS: Final = st.text(
    st.characters(exclude_categories=["C", "Z"]) | st.sampled_from(" \t\n='\"")
)
VALUES: Final = (
    TEXTS
    | st.integers()
    | st.none()
    | st.booleans()
    | st.lists(TEXTS)
    | st.dictionaries(NAMES, st.integers())
)


@given(
    st.fixed_dictionaries(
        {
            "event": st.text("abc.-", min_size=1, max_size=40),
            "level": st.sampled_from(["debug", "info", "warning", "error"]),
        },
        optional={"timestamp": st.just("2026-11-21T17:20:31Z")},
    ),
    st.dictionaries(NAMES, VALUES),
)
def test_a_line_is_what_the_console_would_write(
    known: dict[str, str], fields: dict[str, Any]
) -> None:
    event = {**fields, **known}

    assert render_plain(None, "info", dict(event)) == CONSOLE(
        None, "info", dict(event)
    ).rstrip(" ")


def test_a_traceback_follows_its_line() -> None:
    event = {
        "event": "part.failed",
        "level": "error",
        "exception": "Traceback:\n  x",
    }

    assert render_plain(None, "error", event) == (
        "[error    ] part.failed\n  Traceback:\n    x"
    )


def test_no_value_makes_a_second_line() -> None:
    for why in ("a\nfake [info] line", "a\x1b[2Jb", "a\x85b"):
        event = {"event": "e", "level": "info", "why": why}

        assert render_plain(None, "info", event).isprintable()
