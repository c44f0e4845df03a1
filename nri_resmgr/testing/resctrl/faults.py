"""Commands that fail, and programs that are killed, at a chosen step."""

from __future__ import annotations

import os


class Killed(BaseException):
    """The program under test ends here; nothing of it runs on.

    No `Exception`, so that no handler takes it for an error. Locks are let go of, as
    the kernel does.
    """


class Faults:
    """Counts steps, and lets one of them fail, or all from one on.

    Attributes:
        steps: How many there were.
    """

    def __init__(self) -> None:
        self.steps = 0
        self._fails: dict[int, int] = {}
        self._all_from: tuple[int, int] | None = None
        self._killed_at: int | None = None

    def fail(self, at: int, number: int, *, and_all_after: bool = False) -> None:
        """Let a step fail that is yet to come.

        Args:
            at: 0 is the next one.
            number: Errno.
            and_all_after: Let those after it fail, too.
        """
        if and_all_after:
            self._all_from = self.steps + at, number
        self._fails[self.steps + at] = number

    def kill(self, at: int) -> None:
        """Let the program end before a step that is yet to come; 0 is the next."""
        self._killed_at = self.steps + at

    def clear(self) -> None:
        """Let all go well from now on."""
        self._fails.clear()
        self._all_from = self._killed_at = None

    def step(self) -> None:
        """Count one step.

        Raises:
            OSError: It fails.
            Killed: The program ends.
        """
        number, self.steps = self.steps, self.steps + 1
        if self._killed_at is not None and number >= self._killed_at:
            raise Killed
        error = self._fails.get(number, 0)
        if self._all_from is not None and number >= self._all_from[0]:
            error = self._all_from[1]
        if error:
            raise OSError(error, os.strerror(error))
