"""Lines from a stream of bytes that is cut anywhere."""

from __future__ import annotations

from collections.abc import Iterator


class LineTooLong(Exception):
    """A line exceeds the bound; the stream can no longer be used."""


class Lines:
    """Joins pieces of a stream, and splits them at newlines.

    Args:
        most: The bytes that a line may have; more are never kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Return the lines that end in *piece*, without blank ones.

        Raises:
            LineTooLong: After the lines before the long one.
        """
        *ends, rest = piece.split(b"\n")
        for end in ends:
            self._keep(end)
            line = b"".join(self._pieces)
            self.clear()
            if line.strip():
                yield line
        self._keep(rest)

    def clear(self) -> None:
        """Forget the line that has begun, as at the end of its stream."""
        self._pieces = []
        self._size = 0

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._most:
            self.clear()
            raise LineTooLong
        if piece:
            self._pieces.append(piece)
