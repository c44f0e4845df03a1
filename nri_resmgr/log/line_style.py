"""The form of log lines, which can be changed at any time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

SecondReader: TypeAlias = Callable[[str, str, str, Mapping[str, object]], None]
"""Gets the component, the level, the event and the fields of a line; raises nothing."""


class LineStyle:
    """The parts of each line, and who else gets it.

    Attributes:
        source: Whether lines have the field ``component``.
        headers: Whether lines of text begin with their time and level.
        context: Fields of each line, such as the node that is simulated.
        also: Gets each line, too; None if nothing does.
    """

    def __init__(self) -> None:
        self.source = False
        self.headers = True
        self.context: Mapping[str, object] = {}
        self.also: SecondReader | None = None


line_style: Final = LineStyle()
"""The style of this process."""
