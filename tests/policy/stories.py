"""Stories: scenarios that say what must come of each step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.scenario.read import KINDS, document_of, read_scenario
from nri_resmgr.scenario.steps import Scenario, Step
from nri_resmgr.topology import Machine
from nri_resmgr.values import ResmgrError
from tests.fast_yaml import read_yaml
from tests.policy.direct import DirectNode
from tests.policy.story_outcomes import WANTED, outcome_of, refusal_of

__all__ = [
    "KINDS",
    "Story",
    "name_of",
    "outcome",
    "played_over_socket",
    "policy_of",
    "stories",
]

CASES: Final = Path(__file__).parent / "cases"

# Beside what must come of them: what a step is for, and YAML's anchors.
_REMARKS: Final = (
    *("shows", "unknown", "socket"),
    *("annotations", "other-annotations"),
)

# A story that says so can be played over a socket, too.
_SOCKET: Final = "\nsocket: true\n"


def stories(kind: str = "*") -> list[Path]:
    """Find all stories, by name."""
    return sorted(CASES.glob(f"{kind}/*.yaml"))


def played_over_socket(kind: str) -> list[Path]:
    """Find the stories that say ``socket: true``; to read all would take seconds."""
    return [path for path in stories(kind) if _SOCKET in path.read_text("utf-8")]


def name_of(path: Path) -> str:
    """Name a story as the reports of tests do."""
    return f"{path.parent.name}/{path.stem}"


@attrs.frozen
class Story:
    """A story: what happens, and of each step what was written of it.

    Attributes:
        document: The configuration at the beginning.
        rows: The steps as they are written, expectations included.
    """

    scenario: Scenario
    document: str
    rows: tuple[Mapping[str, Any], ...]

    @classmethod
    def read(cls, path: Path) -> Story:
        """Read the story of a file."""
        text, kind = path.read_text(encoding="utf-8"), KINDS[path.parent.name]
        scenario = read_scenario(parse_yaml(text), *WANTED, *_REMARKS, kind=kind)
        written = read_yaml(path)
        document = scenario.document or document_of(kind)
        rows = tuple(written["story"])
        return cls(scenario, document, rows)

    def steps(self) -> Iterator[tuple[Mapping[str, Any], Step]]:
        """Go through the steps, as they are written and as they are read."""
        return zip(self.rows, self.scenario.steps, strict=True)

    def node(self) -> DirectNode:
        """Set up the node that it happens on."""
        return DirectNode.of(self.scenario.machine, self.document)


def outcome(node: DirectNode, row: Mapping[str, Any], step: Step) -> dict[str, Any]:
    """Let one step happen; return what came of it as the step would write it."""
    try:
        decision = node.play(step)
    except ResmgrError as refusal:
        return refusal_of(refusal, row)
    return outcome_of(row, decision, node.policy, node.warnings)


def policy_of(kind: str, settings: object, machine: Machine) -> ViewedPolicy[Any]:
    """Build the policy that a document of *kind* with these settings asks for."""
    return build_policy(parse_config(document_of(kind, settings)), machine)
