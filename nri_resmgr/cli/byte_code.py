"""Compiles what a launcher imports, so that no start on a busy node has to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

# For one source that cannot be compiled it prints several lines; the last says why.
_COMPILE = "compileall", "-q"


def compile_folders(folders: Sequence[Path], python: str = sys.executable) -> str:
    """Write byte code beside all modules in *folders* that have none.

    Without it, importing the daemon takes some ten times as long; on a node whose
    other processes leave the runtime a small part of a CPU that is more than the five
    seconds in which a launched plugin has to register.

    Args:
        folders: Packages, and folders of programs.
        python: The interpreter that will import them: byte code is of one version.

    Returns:
        Why some of it could not be written; empty where all of it is there. A
        site-packages that this process may not write to is no error: the plugin
        works, and starts more slowly.
    """
    # -I, as in the launcher: PYTHONPYCACHEPREFIX would put it where none looks.
    command = (python, "-I", "-m", *_COMPILE, *map(str, folders))
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and folders
            command, capture_output=True, text=True, check=False
        )
    except OSError as error:
        return f"{python}: {error.strerror}"
    if done.returncode == 0:
        return ""
    lines = (done.stdout + done.stderr).split("\n")
    why = [line.strip() for line in lines if line.strip()]
    return why[-1] if why else f"{python} ended with status {done.returncode}"
