"""The pages about scenarios and simulation show what really happens."""

from __future__ import annotations

import re
from pathlib import Path

from nri_resmgr.cli.render_findings import show_changes, show_findings
from nri_resmgr.scenario.findings import Findings, findings_of
from nri_resmgr.scenario.manifests import read_workload
from nri_resmgr.scenario.node import InProcessNode
from nri_resmgr.scenario.play import Player
from nri_resmgr.scenario.read import KINDS, VERBS
from nri_resmgr.scenario.rows import ROW_KEYS
from nri_resmgr.topology.synthetic import parse_spec

SCENARIOS = Path("docs/scenarios.md").read_text(encoding="utf-8")
SIMULATE = Path("docs/simulate.md").read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def simulated(text: str, machine: str = "", document: str = "") -> Findings:
    scenario = read_workload(text)
    model = parse_spec(machine or scenario.machine)
    node = InProcessNode(model, document or scenario.document)
    Player(node).play(scenario)
    return findings_of(node)


def test_every_scenario_of_the_page_can_be_played() -> None:
    found = [simulated(text) for text in blocks(SCENARIOS, "yaml")]

    assert [(len(one.placements), one.refusals) for one in found] == [
        (2, ()),
        (2, ()),
        (1, ()),
    ]


def test_the_page_has_every_step_and_every_key() -> None:
    prose = re.sub(r"```.*?```", "", SCENARIOS, flags=re.DOTALL)
    words = set(re.findall(r"[\w-]+", " ".join(re.findall(r"`([^`]+)`", prose))))

    assert words >= {*VERBS, *ROW_KEYS, *KINDS}


def test_the_page_shows_the_printed_output() -> None:
    workload, document = blocks(SIMULATE, "yaml")
    shown, changed, _ = blocks(SIMULATE, "text")  # the last one: test_cluster.py
    first = simulated(workload, "2s2n2c2t")
    second = simulated(workload, "2s2n2c2t", document)

    assert show_findings(first, "table") + "\n" == shown
    assert show_changes(first, second, "table")[0] + "\n" == changed
