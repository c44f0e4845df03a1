"""A folder that becomes read-only while a test runs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Mount a folder read-only over itself; skip the test where nothing can be."""
    bind = ("mount", "--bind", str(folder), str(folder))
    if subprocess.run(bind, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount")
    try:
        again = ("mount", "-o", "remount,bind,ro", str(folder))
        subprocess.run(again, check=True)
        yield
    finally:
        subprocess.run(("umount", str(folder)), check=True)
