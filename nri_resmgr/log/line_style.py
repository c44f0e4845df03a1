"""The form of log lines that a configuration can change while the daemon runs."""

from __future__ import annotations

from typing import Final


class LineStyle:
    """The parts of each line.

    Attributes:
        source: Whether lines have the field ``component``.
        headers: Whether lines of text begin with their time and level.
    """

    def __init__(self) -> None:
        self.source = False
        self.headers = True


line_style: Final = LineStyle()
"""The style of this process."""
