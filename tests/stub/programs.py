"""Plugin programs as files, and what they say when they end."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


def program(path: Path, body: str) -> Path:
    """Write an executable plugin program; it finds the package without PATH."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from nri_resmgr.stub import *\n" + textwrap.dedent(body)
    )
    path.chmod(0o755)
    return path


def run(
    *command: str | Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, with *env* as its whole environment."""
    return subprocess.run(
        [str(word) for word in command],
        env=env or {},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
