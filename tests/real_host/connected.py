"""Shipped plugins beside a real containerd, connected to its socket."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nri_resmgr.cli.install import shipped
from tests.real_host.containerd import Containerd
from tests.real_host.patience import patience, wait_until


@contextmanager
def connected(
    daemon: Containerd,
    plugin: str,
    log: Path,
    *flags: str,
    sessions: int = 1,
    within: tuple[str, ...] = (),
) -> Iterator[None]:
    """Run a plugin of the folder from its synchronization on; SIGTERM ends it.

    Args:
        daemon: A running containerd.
        plugin: The name of its folder.
        log: Where its standard error goes.
        flags: Beside the socket.
        sessions: How many it has.
        within: Words in front of its command.
    """
    socket = str(daemon.layout.nri_socket)
    program = str(shipped("plugins") / plugin)
    command = (*within, sys.executable, program, "--socket", socket, *flags)
    with log.open("wb") as output:
        process = subprocess.Popen(command, stderr=output)
    try:
        wait_until(
            lambda: log.read_text().count("session.synchronized") == sessions,
            f"{plugin} to be synchronized (see {log})",
        )
        yield
    finally:
        process.terminate()
        status = process.wait(patience(10))
    assert status == 0
