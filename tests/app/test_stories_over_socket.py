from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.host.tree import HostTree
from nri_resmgr.policies import parse_config
from nri_resmgr.testing import Runtime, running_plugin
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes
from tests.app.kubelet import Kubelet
from tests.policy.stories import Story, name_of, played_over_socket, stories
from tests.policy.story_outcomes import expectation_of

pytestmark = pytest.mark.slow  # each story starts a session

_NAME: Final = "90-resource-policy"
# What a runtime can see; the rest needs the policy's state.
_SEEN: Final = ("gets", "updates", "refused", "shares")
_POLICIES: Final = (
    "topology-aware",
    "balloons",
    "static",
    "static-plus",
    "static-pools",
    "dynamic-pools",
    "podpools",
    "none",
)


@pytest.mark.parametrize(
    "path",
    [path for kind in _POLICIES for path in played_over_socket(kind)],
    ids=name_of,
)
async def test_the_runtime_gets_the_pins_of_the_story(
    path: Path, tmp_path: Path
) -> None:
    story = Story.read(path)
    machine = parse_spec(story.scenario.machine)
    plugin = ResourcePolicy(
        machine,
        parse_config(story.document),
        tree=HostTree(str(tmp_path)),
        plugin_options=PluginOptions(testing=True),
    )
    capacity = Bytes(sum(node.memory for node in machine.nodes))

    async with Runtime(tmp_path) as runtime, running_plugin(runtime, plugin, _NAME):
        kubelet = Kubelet(runtime, _NAME, capacity, story.scenario.steps)
        for row, step in story.steps():
            outcome = await kubelet.play(row, step)
            expected = expectation_of(row)
            seen = {key: expected[key] for key in _SEEN if key in expected}

            assert (row, outcome) == (row, seen)


@pytest.mark.parametrize("kind", _POLICIES)
def test_at_least_a_tenth_of_all_stories_is_played_over_a_socket(kind: str) -> None:
    assert len(played_over_socket(kind)) * 10 >= len(stories(kind))
