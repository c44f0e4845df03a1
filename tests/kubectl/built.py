"""The plugin as one file, as users get it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_BUILD: Final = ROOT / "deploy" / "kubectl" / "build.py"

PROGRAM: Final = "kubectl-nri_resmgr"


def built(folder: Path, *url: str) -> Path:
    """Build it; return the program."""
    subprocess.run([sys.executable, _BUILD, folder, *url], check=True)
    return folder / PROGRAM


def run(
    program: Path,
    *words: str,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run it with nothing but Python's own library, whatever is installed here."""
    return subprocess.run(
        [sys.executable, "-I", "-S", program, *words],
        env=env or {},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
