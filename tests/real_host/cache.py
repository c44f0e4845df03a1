"""Folders that are built once per list of inputs and shared between checkouts."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.real_host.removal import unmount_below

_PART: Final = ".part-"


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
def locked(target: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock file beside *target*; the kernel releases it at exit.

    Raises:
        BlockingIOError: Another process has it, and *wait* is false.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield


def remove_parts(root: Path | None = None) -> None:
    """Remove what killed builds left, unless another process builds the same now.

    Args:
        root: Where the folders are; `cache_root` by default.
    """
    top = root or cache_root()
    # A name has one folder at most; what is built can be a whole system.
    for part in (*top.glob(f"*{_PART}*"), *top.glob(f"*/*{_PART}*")):
        target = part.with_name(part.name.partition(_PART)[0])
        with suppress(BlockingIOError), locked(target, wait=False):
            _remove_part(part)


def _remove_part(part: Path) -> None:
    # debootstrap mounts /proc and /sys.
    unmount_below(part)
    shutil.rmtree(part, ignore_errors=True)


def _build_beside(target: Path, build: Callable[[Path], None]) -> None:
    for leftover in target.parent.glob(f"{target.name}{_PART}*"):
        _remove_part(leftover)
    part = Path(tempfile.mkdtemp(prefix=f"{target.name}{_PART}", dir=target.parent))
    try:
        build(part)
        # mkdtemp makes 0700; a root file system needs /'s usual mode.
        part.chmod(0o755)
        # Atomic: where the name exists, the content is complete.
        part.rename(target)
    finally:
        _remove_part(part)
