"""Runs of pytest on a test that is a text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def run_pytest(
    folder: Path, plugin: str, text: str, *options: str
) -> tuple[int, list[str]]:
    """Run pytest with a plugin of ours; return its status and its lines."""
    (folder / "test_it.py").write_text(text)
    # Strict as ours is: a mark of a plugin that is switched off ends a run.
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -ra --strict-markers\n")
    words = (sys.executable, "-m", "pytest", "-p", plugin, *options)
    done = subprocess.run(
        words, cwd=folder, check=False, capture_output=True, text=True
    )
    return done.returncode, done.stdout.splitlines()
