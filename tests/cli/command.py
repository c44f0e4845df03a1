"""The command as a process, with a clean environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]

# Root without these is refused like any user.
_WITHOUT_MIGHT: Final = "--bounding-set=-dac_override,-dac_read_search"

# This machine may have a daemon of its own.
_OWN_STATE: Final = {"NRI_RESMGR_STATE_DIR": ""}


def nri_resmgr(
    *words: str | Path,
    env: dict[str, str] | None = None,
    weak: bool = False,
    given: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run ``nri-resmgr`` to its end.

    Args:
        words: Its arguments.
        env: Its environment, beside what finds the package.
        weak: Whether file permissions shall count, also for root.
        given: Its standard input.
    """
    prefix: list[str] = []
    if weak and os.geteuid() == 0:
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("root cannot be refused anything without setpriv")
        prefix = [setpriv, _WITHOUT_MIGHT]
    return subprocess.run(
        [*prefix, sys.executable, "-m", "nri_resmgr", *map(str, words)],
        env={"PYTHONPATH": str(ROOT), **_OWN_STATE, **(env or {})},
        input=given,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=60,
        check=False,
    )
