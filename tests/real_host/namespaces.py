"""Network namespaces of tests: a host's and a pod's, with devices, until their end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs

from tests.real_host.absent import give_up

# To the end of its input, which comes at the latest with that of the tests' process.
_HOLDER = "echo made; read -r _"


@attrs.frozen
class Namespace:
    """A network namespace, which a process holds."""

    pid: int

    @property
    def path(self) -> str:
        """Its path for other processes."""
        return f"/proc/{self.pid}/ns/net"

    @property
    def enter(self) -> tuple[str, ...]:
        """The words in front of a command to run it inside."""
        return ("nsenter", f"--net={self.path}")

    def ip(self, *words: str) -> str:
        """Run the program ip inside; return what it prints."""
        command = (*self.enter, "ip", *words)
        return subprocess.run(
            command, check=True, capture_output=True, text=True
        ).stdout

    def devices(self) -> dict[str, dict[str, Any]]:
        """Return what ip(8) says about each device but the loopback."""
        return {k: v for k, v in self.all_devices().items() if k != "lo"}

    def all_devices(self) -> dict[str, dict[str, Any]]:
        """Return what ip(8) says about each device."""
        found = json.loads(self.ip("-json", "-details", "address"))
        return {one["ifname"]: one for one in found}

    def add(self, *names: str) -> None:
        """Add devices, which are veth; their other ends have ``-`` at the end."""
        for name in names:
            self.ip("link", "add", name, "type", "veth", "peer", "name", f"{name}-")

    def end(self) -> None:
        """End the namespace with its devices."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@contextmanager
def new_namespace() -> Iterator[Namespace]:
    """Make a namespace; skip where that cannot be."""
    if os.geteuid() != 0:
        give_up("only root makes network namespaces")
    for program in ("unshare", "nsenter", "ip"):
        if shutil.which(program) is None:
            give_up(f"{program} is not installed")
    command = ("unshare", "--net", "sh", "-c", _HOLDER)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout is not None
        try:
            assert holder.stdout.readline() == b"made\n"
            yield Namespace(holder.pid)
        finally:
            holder.kill()
