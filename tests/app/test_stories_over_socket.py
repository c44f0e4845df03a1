from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from nri_resmgr.app.conduct import Conduct
from nri_resmgr.app.resource_policy import ResourcePolicy
from nri_resmgr.config import API_VERSION, parse_config
from nri_resmgr.host.tree import HostTree
from nri_resmgr.testing import Runtime, running_plugin
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes
from tests.app.kubelet import Kubelet
from tests.policy.stories import KINDS, stories
from tests.policy.story_outcomes import expectation_of

pytestmark = pytest.mark.slow  # each story starts a session

_NAME: Final = "90-resource-policy"
# What a runtime can see; the rest is for those who look into the policy.
_SEEN: Final = ("gets", "updates", "refused", "shares")
_POLICIES: Final = ("topology-aware", "balloons")


def _told_over_socket(kind: str) -> list[Any]:
    """Find the stories that say ``socket: true``."""
    return [
        pytest.param(path, story, id=f"{kind}/{path.stem}")
        for path in stories(kind)
        if (story := yaml.safe_load(path.read_text(encoding="utf-8"))).get("socket")
    ]


@pytest.mark.parametrize(
    ("path", "story"), [row for kind in _POLICIES for row in _told_over_socket(kind)]
)
async def test_the_runtime_gets_what_the_story_says(
    path: Path, story: dict[str, Any], tmp_path: Path
) -> None:
    machine = parse_spec(story["machine"])
    document = {
        "apiVersion": API_VERSION,
        "kind": KINDS[path.parent.name],
        "spec": story.get("spec", {}),
    }
    plugin = ResourcePolicy(
        machine,
        parse_config(yaml.safe_dump(document)),
        tree=HostTree(str(tmp_path)),
        conduct=Conduct(testing=True),
    )
    capacity = Bytes(sum(node.memory for node in machine.nodes))

    async with Runtime(tmp_path) as runtime, running_plugin(runtime, plugin, _NAME):
        kubelet = Kubelet(runtime, _NAME, capacity, story["story"])
        for step in story["story"]:
            outcome = await kubelet.play(step)
            expected = expectation_of(step)
            seen = {key: expected[key] for key in _SEEN if key in expected}

            assert (step, outcome) == (step, seen)


@pytest.mark.parametrize("kind", _POLICIES)
def test_at_least_a_tenth_of_all_stories_is_told_over_a_socket(kind: str) -> None:
    assert len(_told_over_socket(kind)) * 10 >= len(stories(kind))
