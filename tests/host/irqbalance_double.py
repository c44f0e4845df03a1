"""A socket that reads and answers as irqbalance 1.9 does."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path

from nri_resmgr.classes.irq.irqbalance import Bans
from nri_resmgr.values import CpuSet

_READ = 500  # bytes; what is longer is cut


class Balancer:
    """Started with CPU 0 and interrupt 5 banned; it takes over CPUs at once.

    Attributes:
        requests: Those that changed something.
    """

    def __init__(self, path: Path) -> None:
        self.requests: list[str] = []
        self._cpus, self._interrupts = CpuSet.of(0), ["5"]
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{path}")
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def bans(self) -> Bans:
        """The bans in force."""
        return Bans(self._cpus, frozenset(map(int, self._interrupts)))

    def close(self) -> None:
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as line:
            line.connect(self._listener.getsockname())
            line.sendall(b"end")
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            line, _ = self._listener.accept()
            with line:
                text = line.recv(_READ).decode()
                if text == "end":
                    return
                line.sendall(self._answer(text).encode())

    def _answer(self, text: str) -> str:
        self.requests.append(text)
        if text.startswith("settings ban irqs "):
            words = text.split()[3:]
            self._interrupts = [] if words == ["NONE"] else words
        else:
            value = text.removeprefix("settings cpus ")
            self._cpus = CpuSet.of(0) if value == "NULL" else CpuSet.parse(value)
        return ""
