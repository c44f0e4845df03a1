"""Calls that a test lets fail do so as the kernel's own."""

from __future__ import annotations

import errno
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.faults.faulty_node import faulty_node
from tests.faults.node_daemon import BUSY
from tests.faults.node_pods import VISITOR
from tests.faults.system_calls import (
    ALWAYS,
    HANG,
    Fault,
    Point,
    SystemCalls,
    numbers_of,
    why_not_here,
)
from tests.waiting import until

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(bool(why_not_here()), reason=why_not_here()),
]

_LAUNCHER: Final = str(Path(__file__).with_name("filtered.py"))

# It asks for memory only once it has everything else that it needs.
_PROGRAM: Final = """\
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.sbrk.restype, libc.sbrk.argtypes = ctypes.c_long, [ctypes.c_long]
libc.sbrk(0)
os.path.exists("/begin")
print(libc.sbrk(1 << 20), ctypes.get_errno())
"""


def test_a_heap_that_cannot_grow_is_refused_by_its_end() -> None:
    has_begun = False

    def place_of(path: str) -> str | None:
        nonlocal has_begun
        has_begun = has_begun or path == "/begin"
        return path.strip("[]") if has_begun else None

    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            program = subprocess.Popen(
                (
                    *(sys.executable, "-SE", _LAUNCHER, str(theirs.fileno())),
                    numbers_of({"mmap", "newfstatat"}),
                    *(sys.executable, "-SEc", _PROGRAM),
                ),
                stdout=subprocess.PIPE,
                pass_fds=(theirs.fileno(),),
            )
        _, (listener,), _, _ = socket.recv_fds(ours, 1, 1)
    calls = SystemCalls(listener, place_of)
    memory = Fault(Point("mmap", "memory"), errno.ENOMEM, 0, ALWAYS)
    calls.arm(memory)
    calls.start()
    with program:
        text, _ = program.communicate(timeout=60)

    # From an errno the C library would make a larger heap than there is.
    assert text.split() == [b"-1", str(errno.ENOMEM).encode()]
    assert memory.hits == 1


async def test_a_state_directory_that_cannot_be_examined_is_closed(
    tmp_path: Path,
) -> None:
    """One that was made again: it is opened, and its owner cannot be read."""
    async with faulty_node(tmp_path / "node") as node:
        calls = await node.daemon.launch()
        await node.daemon.in_step()
        await node.place(VISITOR)
        state = node.folder / "state"
        await until(lambda: bool(node.daemon.checkpoint()), BUSY)
        # The first call finds nothing at the path.
        fault = Fault(Point("newfstatat", "state"), errno.EIO, after=1)
        state.rename(node.folder / "away")
        calls.arm(fault)
        await node.remove(VISITOR.name)
        await until(lambda: bool(node.daemon.checkpoint()), BUSY)
        links, _ = node.daemon.resources()

    assert fault.hits == 1
    assert links.count(str(state)) == 1


async def test_a_log_on_a_disk_that_hangs_delays_nothing(tmp_path: Path) -> None:
    async with faulty_node(tmp_path / "node") as node:
        calls = await node.daemon.launch()
        await node.daemon.in_step()
        await node.place(VISITOR)
        await until(lambda: "control.listening" in node.daemon.log.read_text(), BUSY)
        fault = Fault(Point("write", "log"), HANG)
        calls.arm(fault)
        for _ in range(3):
            await node.remove(VISITOR.name)
            await node.place(VISITOR)
        status, _ = await node.daemon.get("/healthz")
        await node.daemon.ask()
        hits, pinned = fault.hits, "visitor" in node.cgroups.pins()
        calls.disarm()
        await until(
            lambda: node.daemon.log.read_text().count("container.placed") == 4, BUSY
        )

    assert (hits, status, pinned) == (1, 200, True)
