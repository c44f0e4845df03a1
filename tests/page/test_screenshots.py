"""The screenshots of the docs can be taken, and are of what they say."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.page.screenshots import NAMES, PICTURES, take
from tests.pictures.seen import seen

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("chromium")]

PNG = b"\x89PNG\r\n\x1a\n"


def test_those_of_the_docs_are_taken_of_a_node_at_work(tmp_path: Path) -> None:
    asyncio.run(take(tmp_path))

    taken = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    assert set(taken) == set(NAMES)
    for name in ("page.png", "top.png"):
        # Another Chromium or font draws other pixels.
        assert taken[name].startswith(PNG)
        assert (PICTURES / name).read_bytes().startswith(PNG)
    assert taken["node.svg"] == (PICTURES / "node.svg").read_bytes()
    assert seen(taken["node.svg"].decode()).colour_of("default/db/db")
