from __future__ import annotations

from pathlib import Path

import pytest

from tests.policy.pool_sums import check_pools
from tests.policy.stories import Story, name_of, outcome, stories
from tests.policy.story_outcomes import expectation_of


@pytest.mark.parametrize("path", stories(), ids=name_of)
def test_containers_get_the_outcomes_of_the_story(path: Path) -> None:
    story = Story.read(path)
    node = story.node()

    for row, step in story.steps():
        found = outcome(node, row, step)

        assert (row, found) == (row, expectation_of(row))
        check_pools(node.policy, node.state)


def test_every_story_begins_with_a_sentence() -> None:
    assert [
        path.name for path in stories() if not path.read_text().startswith("# ")
    ] == []
