"""Root directories of Debian suites, made by debootstrap."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.real_host.binaries import SEARCH_PATH
from tests.real_host.debian import PackageUnavailable, ProgramFailed, Suite
from tests.real_host.removal import unmount_below
from tests.real_host.retries import with_retries

_SCRIPTS: Final = Path("/usr/share/debootstrap/scripts")


def bootstrap(suite: Suite, packages: tuple[str, ...], folder: Path) -> None:
    """Make an empty folder the root directory of a minimal system with *packages*.

    Raises:
        PackageUnavailable: It cannot be made here; the text says why.
    """
    if os.geteuid() != 0:
        raise PackageUnavailable("debootstrap needs root")
    options = (
        "--variant=minbase",
        f"--include={','.join(packages)}",
        f"--keyring={suite.keyring}",
        f"--components={','.join(suite.components)}",
    )
    argv = ["debootstrap", *options, suite.name, str(folder), suite.mirror]
    if suite.script is not None:
        argv.append(str(_SCRIPTS / suite.script))

    def fetch() -> None:
        # What a try before has left, with /proc mounted in it.
        unmount_below(folder)
        shutil.rmtree(folder)
        folder.mkdir()
        try:
            done = subprocess.run(
                argv, check=False, capture_output=True, text=True, env=_environment()
            )
        except FileNotFoundError:
            raise PackageUnavailable("debootstrap is not installed") from None
        if done.returncode:
            # It complains on stdout.
            raise ProgramFailed(f"debootstrap failed: {done.stdout[-1000:].strip()}")

    with_retries(fetch, ProgramFailed)


def _environment() -> dict[str, str]:
    # A PYTHONDONTWRITEBYTECODE of ours must not decide what the folder contains.
    own = {name: v for name, v in os.environ.items() if not name.startswith("PYTHON")}
    return own | {"PATH": SEARCH_PATH, "LC_ALL": "C.UTF-8"}
