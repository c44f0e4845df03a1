"""Times as text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

_NANOSECONDS: Final = 10**9


def time_text(nanoseconds: int) -> str:
    """Format UNIX nanoseconds by RFC 3339, in UTC; empty for 0.

    >>> time_text(1_700_000_000_123_456_789)
    '2023-11-14T22:13:20.123Z'
    """
    if not nanoseconds:
        return ""
    seconds, rest = divmod(nanoseconds, _NANOSECONDS)
    moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
