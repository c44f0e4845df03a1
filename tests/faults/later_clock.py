"""A monotonic clock of other processes that jumps: minutes pass in no time."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Final

import attrs

_ROOT: Final = Path(__file__).parents[2]
_SITE: Final = Path(__file__).with_name("later")


@attrs.frozen
class LaterClock:
    """The clock of those processes that have the `environment`.

    Attributes:
        path: A file for the seconds; made here.
    """

    path: Path

    def __attrs_post_init__(self) -> None:
        self.jump(0.0)

    @property
    def environment(self) -> dict[str, str]:
        """Variables that have Python read `tests.faults.later` before a program."""
        folders = (str(_SITE), str(_ROOT), os.environ.get("PYTHONPATH", ""))
        found = os.pathsep.join(filter(None, folders))
        return {"LATER_CLOCK": str(self.path), "PYTHONPATH": found}

    def jump(self, seconds: float) -> None:
        """Let all clocks be so much later than the machine's."""
        # In place: the processes have mapped it.
        with self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.write(struct.pack("d", seconds))
