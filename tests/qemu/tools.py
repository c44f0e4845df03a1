"""The programs that build and boot a guest, and how they are started."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.real_host.binaries import SEARCH_PATH
from tests.real_host.debian import PackageUnavailable

_PROGRAMS = (
    *("qemu-system-x86_64", "debootstrap", "depmod", "mke2fs"),
    *("zstd", "cpio", "xargs", "setpriv", "unshare"),
)


def require_tools() -> None:
    """Check that a guest can be built and booted here.

    Raises:
        PackageUnavailable: It cannot; the text is a skip reason.
    """
    if os.uname().machine != "x86_64":
        raise PackageUnavailable("the guest is built of amd64 packages")
    if os.geteuid() != 0:
        raise PackageUnavailable("debootstrap needs root")
    missing = [name for name in _PROGRAMS if not shutil.which(name, path=SEARCH_PATH)]
    if missing:
        raise PackageUnavailable(f"not installed: {', '.join(missing)} (make packages)")


def run_tool(
    *argv: str | Path, cwd: Path | None = None, stdin: bytes | None = None
) -> bytes:
    """Run a program to its end and return what it printed.

    Raises:
        ToolFailed: It did not exit with 0; the text has its last words.
    """
    done = subprocess.run(
        argv,
        check=False,
        cwd=cwd,
        input=stdin,
        capture_output=True,
        env=_environment(),
    )
    if done.returncode:
        # debootstrap complains on stdout.
        said = (done.stdout[-1000:] + done.stderr).decode(errors="replace").strip()
        raise ToolFailed(f"{argv[0]} exited with {done.returncode}: {said[-2000:]}")
    return done.stdout


def _environment() -> dict[str, str]:
    # A PYTHONDONTWRITEBYTECODE of ours must not decide what the image contains.
    own = {name: v for name, v in os.environ.items() if not name.startswith("PYTHON")}
    return own | {"PATH": SEARCH_PATH, "LC_ALL": "C.UTF-8"}


class ToolFailed(Exception):
    """A program that builds the guest failed."""
