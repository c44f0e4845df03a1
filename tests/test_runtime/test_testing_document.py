"""The blocks of docs/testing-plugins.md run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nri_proto import NriLevel
from tests.test_runtime.logged_session import record
from tests.test_runtime.pytest_process import FIXTURES, ROOT, run_pytest

pytestmark = pytest.mark.process

DOCUMENT = ROOT / "docs" / "testing-plugins.md"
BLOCK = re.compile(r"```python\n# (?P<name>test_\w+\.py)\n(?P<text>.*?)```", re.DOTALL)

SETTINGS = """[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
filterwarnings = error
"""


async def test_each_block_passes_as_a_test(tmp_path: Path) -> None:
    blocks = BLOCK.findall(DOCUMENT.read_text())
    assert len(blocks) == DOCUMENT.read_text().count("```python")
    for name, text in blocks:
        (tmp_path / name).write_text(text)
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    # The file of a block, as the page says how to make it.
    await record(tmp_path, tmp_path / "session.jsonl", NriLevel(0, 8))
    done = run_pytest(tmp_path, *FIXTURES)

    assert done.returncode == 0, done.stdout + done.stderr
