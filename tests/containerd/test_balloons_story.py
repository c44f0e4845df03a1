"""The balloons policy in the emulated machine: what containers see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.real_host.binaries import Binaries
from tests.real_host.containerd import Containerd
from tests.real_host.sights import Sights, play
from tests.real_host.stage import Stage
from tests.real_host.stage_plugins import Reconfigured

pytestmark = pytest.mark.containerd

# The story is also played with the policy alone; the same is expected there.
_CASES: Final = Path(__file__).parents[1] / "policy/cases/balloons"
STORY: Final = yaml.safe_load((_CASES / "filling-node.yaml").read_text())


@pytest.fixture(scope="module")
def stage(
    programs: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """The node, on which each step begins where the last one ended.

    It has a daemon of its own: there a start takes a third of the time that all the
    pods take to go.
    """
    daemon = Containerd(programs, tmp_path_factory.mktemp("cd"))
    plugin = Reconfigured(daemon.layout.nri_socket, daemon.layout.folder / "plugin.log")
    with ExitStack() as stack:
        stack.callback(daemon.close)
        daemon.start()
        kind, settings = "BalloonsPolicy", STORY["spec"]
        yield stack.enter_context(Stage(daemon, plugin, kind, settings))


@pytest.fixture(scope="module")
def expected() -> Sights:
    """What all containers should see by now; empty for those left alone."""
    return {}


@pytest.mark.parametrize(
    "step", [pytest.param(step, id=step["shows"]) for step in STORY["story"]]
)
def test_containers_see_that(
    stage: Stage, expected: Sights, step: Mapping[str, Any]
) -> None:
    play(stage, expected, step)


def test_only_the_refused_ones_failed(stage: Stage) -> None:
    refused = [step for step in STORY["story"] if "refused" in step]

    assert len(stage.plugin.events("container.refused")) == len(refused)
