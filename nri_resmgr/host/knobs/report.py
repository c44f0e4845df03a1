"""Reports what was written to host files, and what other programs changed."""

from __future__ import annotations

import msgspec


class KnobFailure(msgspec.Struct, frozen=True):
    """A file that could not be set."""

    path: str
    value: str
    why: str

    def __str__(self) -> str:
        return f"cannot write {self.value!r} to {self.path}: {self.why}"


class KnobReport(msgspec.Struct, frozen=True):
    """Changes of host files by one call.

    Attributes:
        written: Files that were set to the desired value.
        restored: Files that have their original value again.
        failed: Files that could not be set; the next call retries.
        drifted: Restored files that another program had changed meanwhile.
    """

    written: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    failed: tuple[KnobFailure, ...] = ()
    drifted: tuple[str, ...] = ()


class KnobDrift(msgspec.Struct, frozen=True):
    """A file that another program has changed.

    Attributes:
        found: The value it has; None if the file is gone.
    """

    path: str
    expected: str
    found: str | None


class KnobChanges:
    """Collects the changes of one call."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.restored: list[str] = []
        self.failed: list[KnobFailure] = []
        self.drifted: list[str] = []

    def fail(self, path: str, value: str, why: str) -> None:
        """Add a file that could not be set."""
        self.failed.append(KnobFailure(path, value, why))

    def report(self) -> KnobReport:
        """Return the collected changes."""
        return KnobReport(
            tuple(self.written),
            tuple(self.restored),
            tuple(self.failed),
            tuple(self.drifted),
        )
