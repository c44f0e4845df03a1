"""A place for the sockets of kubelets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder with a short path: that of a socket has 107 characters at most."""
    with TemporaryDirectory(prefix="nri-") as name:
        yield Path(name)
