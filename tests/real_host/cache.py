"""Folders that are built once per list of inputs and shared between checkouts."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_root() -> Path:
    """The project's folder below the user's cache folder; a fresh clone finds it too.

    Source:
        XDG Base Directory Specification, XDG_CACHE_HOME.
    """
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "nri-resmgr"


def cached(
    name: str,
    inputs: tuple[str, ...],
    build: Callable[[Path], None],
    root: Path | None = None,
) -> Path:
    """Return the folder that *build* fills from *inputs*, building it if missing.

    Two processes that call it at once build once; a build that fails or is killed
    leaves nothing that a later call would take for the result.

    Args:
        name: Readable part of the folder's name.
        inputs: Everything the content depends on, the recipe's version included.
        build: Fills an empty folder.
        root: Where the folders are; `cache_root` by default.
    """
    digest = hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:12]
    target = (root or cache_root()) / f"{name}-{digest}"
    if target.is_dir():
        return target
    with locked(target):
        if not target.is_dir():
            _build_beside(target, build)
    return target


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """Hold the lock file beside *target*; the kernel releases it at exit."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_beside(target: Path, build: Callable[[Path], None]) -> None:
    for leftover in target.parent.glob(f"{target.name}.part-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    part = Path(tempfile.mkdtemp(prefix=f"{target.name}.part-", dir=target.parent))
    try:
        build(part)
        # mkdtemp makes 0700; a root file system needs /'s usual mode.
        part.chmod(0o755)
        # Atomic: where the name exists, the content is complete.
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
