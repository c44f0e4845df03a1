"""A memory cgroup, of version 1 or 2, with the limit that the manifests ship."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.real_host.runs import own_name

SHIPPED_LIMIT: Final = 192 << 20
"""Bytes; tests/deploy/test_pod.py compares it with the DaemonSet."""

_TOP: Final = Path("/sys/fs/cgroup")


@contextmanager
def memory_cgroup(limit: int = SHIPPED_LIMIT) -> Iterator[Path]:
    """Make a cgroup below the root; needs root."""
    unified = (_TOP / "cgroup.controllers").exists()
    cgroup = (_TOP if unified else _TOP / "memory") / own_name("soak")
    if unified:
        (_TOP / "cgroup.subtree_control").write_text("+memory")
    cgroup.mkdir()
    try:
        name = "memory.max" if unified else "memory.limit_in_bytes"
        (cgroup / name).write_text(str(limit))
        yield cgroup
    finally:
        cgroup.rmdir()


def kills(cgroup: Path) -> int:
    """Return how often the kernel killed a process of it for lack of memory."""
    events = cgroup / "memory.events"
    if not events.exists():
        events = cgroup / "memory.oom_control"
    rows = dict(line.split() for line in events.read_text().splitlines())
    return int(rows["oom_kill"])


@contextmanager
def folder_on_disk() -> Iterator[Path]:
    """Make a folder whose files do not count as memory of a cgroup.

    Those of a tmpfs do, which /tmp is from Debian 13 on.
    """
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        yield Path(name)
