"""The measurements: each returns the figures of its runs."""

from __future__ import annotations

import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from nri_resmgr.stub.service import SETTLING_TIME
from tests.benchmarks.node import creation, snapshot
from tests.benchmarks.plugins import Programs, Running, running

STARTS: Final = 45  # processes: one start takes half as long again as another
CALLS: Final = 2000  # per process
_WRITING: Final = 0.3  # seconds, for what a process writes after its answer
ROUNDS: Final = 7  # processes that answer so many calls

_SNAPSHOT = snapshot(250, 500).SerializeToString()
_CREATION = creation(9999).SerializeToString()

Command = Sequence[str | Path]


@attrs.frozen
class Starts:
    """Milliseconds of the starts of processes.

    Attributes:
        registered: From their start to RegisterPlugin.
        configuring: From the answer to that, to the answer of Configure.
    """

    registered: list[float]
    configuring: list[float]


def start_times(command: Command, documents: Sequence[str] = ("",)) -> Starts:
    """Start processes; Configure hands over the documents in turn.

    A first one is not measured: it writes a document to the cache.
    """
    starts = Starts([], [])
    for number in range(-1, STARTS):
        document = documents[number % len(documents)]
        with running(command, document=document) as plugin:
            if number >= 0:
                starts.registered.append(1e3 * plugin.start)
                starts.configuring.append(1e3 * (plugin.configured - plugin.start))
            time.sleep(_WRITING)
    return starts


def import_times(programs: Programs) -> list[float]:
    """Milliseconds of a Python process that only imports the dependencies."""
    return [1e3 * _import(programs) for _ in range(STARTS)]


def echo_times(programs: Programs) -> list[float]:
    """Microseconds (median of a round) for as many bytes through bare asyncio."""
    return [_echo(programs) for _ in range(ROUNDS)]


def creation_times(command: Command) -> list[float]:
    """Microseconds (median of a round) of a CreateContainer of 2.9 kB."""
    return [_creation(command) for _ in range(ROUNDS)]


def synchronization(command: Command) -> tuple[list[float], list[float]]:
    """Milliseconds of a new process' first Synchronize, and MiB resident after."""
    times, sizes = [], []
    for _ in range(ROUNDS):
        with running(command) as plugin:
            times.append(1e3 * plugin.peer.call("Synchronize", _SNAPSHOT))
            time.sleep(SETTLING_TIME + 0.5)
            sizes.append(plugin.resident)
    return times, sizes


def _import(programs: Programs) -> float:
    modules = "google.protobuf.message, yaml, attrs, structlog"
    start = time.perf_counter()
    command = (programs.python, "-I", "-c", f"import {modules}")
    subprocess.run(command, check=True, env={})
    return time.perf_counter() - start


def _creation(command: Command) -> float:
    with running(command) as plugin:
        plugin.peer.call("Synchronize", b"")
        return 1e6 * _median_call(plugin, CALLS)


def _median_call(plugin: Running, calls: int) -> float:
    times = [plugin.peer.call("CreateContainer", _CREATION) for _ in range(calls)]
    return statistics.median(times[calls // 10 :])  # the first ones warm caches


def _echo(programs: Programs) -> float:
    with tempfile.TemporaryDirectory() as name:
        path = f"{name}/s"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        process = subprocess.Popen((programs.python, "-I", programs.echo, path))
        try:
            connected, _ = listener.accept()
            with connected, listener:
                times = [_bounce(connected) for _ in range(CALLS)]
        finally:
            process.kill()
            process.wait()
    return 1e6 * statistics.median(times[CALLS // 10 :])


def _bounce(connected: socket.socket) -> float:
    start = time.perf_counter()
    connected.sendall(_CREATION)
    missing = len(_CREATION)
    while missing:
        missing -= len(connected.recv(missing))
    return time.perf_counter() - start
