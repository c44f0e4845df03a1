"""What was done to host files, and what others did to them."""

from __future__ import annotations

import msgspec


class KnobFailure(msgspec.Struct, frozen=True):
    """A file that does not have the value that it should.

    Attributes:
        path: The file, as the host knows it.
        value: What it should have been set to.
        why: What the kernel said.
    """

    path: str
    value: str
    why: str

    def __str__(self) -> str:
        return f"cannot write {self.value!r} to {self.path}: {self.why}"


class KnobReport(msgspec.Struct, frozen=True):
    """What was done to host files.

    Attributes:
        written: Files that were set to what is desired.
        restored: Files that were set back, or had their original value already.
        failed: Files that are not as they should be; they are tried again.
        drifted: Restored files that somebody else had changed meanwhile.
    """

    written: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    failed: tuple[KnobFailure, ...] = ()
    drifted: tuple[str, ...] = ()


class Drift(msgspec.Struct, frozen=True):
    """A file that somebody else has changed.

    Attributes:
        path: The file, as the host knows it.
        expected: The value it should have.
        found: The value it has; None if the file is gone.
    """

    path: str
    expected: str
    found: str | None


class Work:
    """What was done so far, of one call."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.restored: list[str] = []
        self.failed: list[KnobFailure] = []
        self.drifted: list[str] = []

    def fail(self, path: str, value: str, why: str) -> None:
        """Note a file that is not as it should be."""
        self.failed.append(KnobFailure(path, value, why))

    def report(self) -> KnobReport:
        """Say it all."""
        return KnobReport(
            tuple(self.written),
            tuple(self.restored),
            tuple(self.failed),
            tuple(self.drifted),
        )
