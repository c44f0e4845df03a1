"""Lets operations fail, or ends the program under test, at a chosen step."""

from __future__ import annotations

import os


class Killed(BaseException):
    """The program under test is killed here.

    Not an `Exception`, so that no handler catches it. Locks are released, as by the
    kernel.
    """


class Faults:
    """Counts steps, and lets one of them fail, or all from one on."""

    def __init__(self) -> None:
        self.steps = 0
        self._fails: dict[int, int] = {}
        self._all_from: tuple[int, int] | None = None
        self._killed_at: int | None = None

    def fail(self, at: int, number: int, *, and_all_after: bool = False) -> None:
        """Let step *at* from now fail with errno *number*; 0 is the next step."""
        if and_all_after:
            self._all_from = self.steps + at, number
        self._fails[self.steps + at] = number

    def kill(self, at: int) -> None:
        """End the program before a future step; 0 is the next one."""
        self._killed_at = self.steps + at

    def clear(self) -> None:
        """Let all further steps succeed."""
        self._fails.clear()
        self._all_from = self._killed_at = None

    def step(self) -> None:
        """Count one step.

        Raises:
            OSError: The step fails.
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
