from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.policy.pool_sums import check_pools
from tests.policy.stories import Node, stories
from tests.policy.story_outcomes import expectation_of


@pytest.mark.parametrize(
    "path", stories(), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_everybody_gets_what_the_story_says(path: Path) -> None:
    story = yaml.safe_load(path.read_text(encoding="utf-8"))
    node = Node.of(path, story)

    for step in story["story"]:
        outcome = node.play(step)

        assert (step, outcome) == (step, expectation_of(step))
        check_pools(node.policy, node.state)


def test_every_story_begins_with_a_sentence() -> None:
    assert [
        path.name for path in stories() if not path.read_text().startswith("# ")
    ] == []
