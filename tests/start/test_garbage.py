"""Commands collect garbage, though it is off while modules are imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

CODE = """
import gc
from nri_resmgr.__main__ import main
main(["check", "/dev/null"])
print("collects" if gc.isenabled() else "does not collect")
"""


def test_a_command_collects() -> None:
    done = subprocess.run(
        (sys.executable, "-c", CODE),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.splitlines()[-1] == "collects"
