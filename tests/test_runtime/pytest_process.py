"""pytest as a process, on tests of an author of plugins."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

# As where the package is installed: an editable installation may be older than this.
FIXTURES: Final = ("-p", "nri_resmgr.pytest_plugin")


def run_pytest(
    folder: Path, *arguments: str, path: tuple[Path, ...] = (), **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the tests of a folder, in it.

    Args:
        folder: Has the tests, and their configuration if any.
        arguments: Of pytest.
        path: Where Python looks for modules before it looks into this tree.
        variables: Of the environment.
    """
    python_path = os.pathsep.join(map(str, (*path, ROOT)))
    return subprocess.run(
        (*(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"), *arguments),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": python_path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
