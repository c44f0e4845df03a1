"""What a machine cannot do of what CPU classes say."""

from __future__ import annotations

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing of a class that cannot be done, or not quite.

    Attributes:
        cpu_class: The name of the class.
        key: Of the document, ``maxFreq``.
        file: Where the kernel would take it, or says what it takes.
        why: What stands against it, with the limit and what would help.
        is_error: Whether nothing at all comes of it on this machine. Otherwise it is
            done in part, or within limits.
    """

    cpu_class: str
    key: str
    file: str
    why: str
    is_error: bool

    def __str__(self) -> str:
        return f"CPU class {self.cpu_class}, {self.key}: {self.why} ({self.file})"
