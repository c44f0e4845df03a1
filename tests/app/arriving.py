"""Requests that arrive as soon as the event loop looks for them."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Requests:
    """A peer that sends a byte as soon as the last one was read.

    Attributes:
        served: How many were read.
        most: The most calls of Python functions between two of them.
    """

    def __init__(self) -> None:
        self.served = self.most = 0
        self._calls = 0
        self._ours, self._theirs = socket.socketpair()

    @contextmanager
    def arriving(self) -> Iterator[None]:
        """Let requests arrive, and count calls."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._ours, self._serve)
        self._theirs.send(b"?")
        before = sys.getprofile()
        sys.setprofile(self._count)
        try:
            yield
        finally:
            sys.setprofile(before)
            loop.remove_reader(self._ours)
            self._ours.close()
            self._theirs.close()

    def _serve(self) -> None:
        self.served += 1
        self.most = max(self.most, self._calls)
        self._calls = 0
        self._theirs.send(self._ours.recv(1))

    def _count(self, _frame: FrameType, what: str, _argument: object) -> None:
        self._calls += what == "call"
