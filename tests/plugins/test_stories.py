"""Shipped plugins: their stories, at each NRI level."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_proto import NriLevel
from tests.plugins.stories import CASES, Stories

pytestmark = pytest.mark.process

STORIES = {path.stem: Stories.of(path.stem) for path in sorted(CASES.iterdir())}


@pytest.mark.parametrize(
    ("plugin", "level"),
    [
        pytest.param(plugin, level, id=f"{plugin}-{level}")
        for plugin, stories in STORIES.items()
        for level in stories.levels
    ],
)
async def test_a_plugin_does_what_its_stories_say(
    tmp_path: Path, plugin: str, level: NriLevel
) -> None:
    stories = STORIES[plugin]

    outcomes, warnings = await stories.play(plugin, level, tmp_path)

    assert outcomes == {story.it: story.expected(level) for story in stories.stories}
    assert warnings == stories.warnings(level)
