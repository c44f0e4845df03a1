"""The blocks of docs/testing-plugins.md run as they stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "testing-plugins.md"
BLOCK = re.compile(r"```python\n# (?P<name>test_\w+\.py)\n(?P<text>.*?)```", re.DOTALL)

SETTINGS = f"""[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
filterwarnings = error
pythonpath = {ROOT}
"""


def test_each_block_passes_as_a_test(tmp_path: Path) -> None:
    blocks = BLOCK.findall(DOCUMENT.read_text())
    assert len(blocks) == DOCUMENT.read_text().count("```python")
    for name, text in blocks:
        (tmp_path / name).write_text(text)
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    done = subprocess.run(
        (*command, str(tmp_path)), capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
