"""A plugin as a process of its own, with its log as data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from tests.real_host.cgroups import CpuShare
from tests.real_host.patience import patience, wait_until


class PluginProcess:
    """A program that logs JSON lines to standard error; `with` starts it.

    Args:
        arguments: After the interpreter: a script's path, or ``-m`` and a module.
        log: Where its output goes; appended to, so that a restart keeps it.
        environment: Variables, besides those of the tests.
        within: A cgroup for it.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        log: Path,
        environment: Mapping[str, str] = MappingProxyType({}),
        within: CpuShare | None = None,
    ) -> None:
        self._arguments = tuple(arguments)
        self._log = log
        self._environment = {**os.environ, **environment}
        self._within = within
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def resource_policy(
        cls, socket: Path, log: Path, *flags: str, document: str = ""
    ) -> Self:
        """The daemon, on a runtime's socket.

        Args:
            socket: Where the runtime listens for plugins.
            log: Where its output goes; its configuration is beside it.
            flags: After ``run``.
            document: Its configuration; empty for the built-in default.
        """
        arguments = ("-m", "nri_resmgr", "run", "--nri-socket", str(socket))
        if document:
            config = log.with_suffix(".yaml")
            config.write_text(document)
            flags = ("--config-file", str(config), *flags)
        return cls((*arguments, "--log-format", "json", *flags), log)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it and wait until the runtime has synchronized it."""
        before = len(self.events("session.synchronized"))
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                (sys.executable, *self._arguments),
                stdout=log,
                stderr=log,
                env=self._environment,
            )
        if self._within is not None:
            self._within.add(self._process.pid)
        self.wait_for("session.synchronized", before + 1)

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self._process is not None
        return self._process.pid

    def is_up(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def wait(self) -> int:
        """Wait until it ends; return the exit status."""
        assert self._process is not None
        return self._process.wait(patience(10))

    @property
    def log_text(self) -> str:
        """All complete lines that it has printed."""
        text = self._log.read_text() if self._log.exists() else ""
        return text[: text.rfind("\n") + 1]

    def events(self, name: str) -> list[dict[str, Any]]:
        """Its log lines of one kind."""
        lines = (json.loads(line) for line in self.log_text.splitlines())
        return [line for line in lines if line["event"] == name]

    def wait_for(self, name: str, count: int = 1) -> None:
        """Wait until it has logged *count* lines of one kind."""
        what = f"{count} x {name} in {self._log}"
        wait_until(lambda: len(self.events(name)) >= count, what)
