"""Each alert fires where it should and not beside it, and has a section of the page."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.fast_yaml import read_yaml
from tests.monitoring.programs import promtool
from tests.monitoring.rules import ALERTS, MONITORING, specification

ROOT: Final = MONITORING.parents[1]
STORIES: Final = tuple(read_yaml(Path(__file__).parent / "stories.yaml"))
SEVERITIES: Final = {"critical", "warning"}


def run(*arguments: str | Path) -> tuple[int, str]:
    done = subprocess.run(
        [promtool(), *arguments], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(specification()))
    return path


@pytest.mark.process
def test_promtool_accepts_the_rules(rules: Path) -> None:
    code, said = run("check", "rules", "--lint=all", "--lint-fatal", rules)

    assert code == 0, said
    assert f"{len(ALERTS)} rules found" in said


@pytest.mark.process
@pytest.mark.parametrize(
    "story",
    [pytest.param(one, id=f"{one['alert']}-{i}") for i, one in enumerate(STORIES)],
)
def test_an_alert_fires_for_the_series_of_its_story_only(
    story: Mapping[str, Any], rules: Path, tmp_path: Path
) -> None:
    expected = [
        *(_at(story, time, ()) for time in story["silent"]),
        *(
            _at(story, story["firing"], (_fired(story),))
            for _ in story.get("labels", ())
        ),
    ]
    test = {
        "interval": "1m",
        "input_series": [
            {"series": name, "values": values}
            for name, values in story["series"].items()
        ],
        "alert_rule_test": expected,
    }
    path = tmp_path / "test.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "rule_files": [rules.name],
                "evaluation_interval": "1m",
                "tests": [test],
            }
        )
    )

    code, said = run("test", "rules", path)

    assert code == 0, said


def _at(
    story: Mapping[str, Any], time: str, fired: tuple[Mapping[str, Any], ...]
) -> dict[str, Any]:
    return {"alertname": story["alert"], "eval_time": time, "exp_alerts": list(fired)}


def _fired(story: Mapping[str, Any]) -> dict[str, Any]:
    """Return the alert; texts without values are those of the rule."""
    rule = ALERTS[story["alert"]]
    texts = {key: story[key] for key in ("summary", "description") if key in story}
    return {
        "exp_labels": {**story["labels"], **rule["labels"]},
        "exp_annotations": {**rule["annotations"], **texts},
    }


def test_each_alert_has_stories_of_both_outcomes() -> None:
    firing = {one["alert"] for one in STORIES if "firing" in one}

    assert firing == set(ALERTS)
    assert [one["alert"] for one in STORIES if not one["silent"]] == []


def test_each_alert_has_a_severity_and_a_sentence() -> None:
    for name, one in ALERTS.items():
        assert set(one["annotations"]) == {"summary", "description", "runbook_url"}
        assert one["labels"].keys() == {"severity"}
        assert one["labels"]["severity"] in SEVERITIES
        assert "{{ $labels.node }}" in one["annotations"]["summary"], name


def test_each_alert_links_its_section_and_each_section_is_of_an_alert() -> None:
    linked = {
        name: one["annotations"]["runbook_url"].partition("#")
        for name, one in ALERTS.items()
    }
    (page,) = {path for path, _, _ in linked.values()}
    text = (ROOT / page).read_text(encoding="utf-8")
    sections = re.findall(r"(?m)^### (NriResmgr\w+)$", text)

    assert sections == list(ALERTS)
    # What web pages of repositories make of a heading.
    assert {name: anchor for name, (_, _, anchor) in linked.items()} == {
        name: name.lower() for name in ALERTS
    }


def test_alerts_go_by_the_job_of_the_pod_monitor() -> None:
    path = ROOT / "deploy/kubernetes/options/pod-monitor/pod-monitor.yaml"
    spec = yaml.safe_load(path.read_text(encoding="utf-8"))["spec"]
    job = spec["selector"]["matchLabels"][spec["jobLabel"]]
    jobs = {
        found
        for one in ALERTS.values()
        for found in re.findall(r'\bjob="([^"]*)"', one["expr"])
    }

    assert jobs == {job}
