"""The page of symptoms: its form, and its lines of the log, which exist."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.cli.test_examples import parses
from tests.docs.log_events import ROOT, event_names, logged

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
LINES = re.findall(r"(?m)^\[(\w+) *\] (\S+) +(.*)$", PAGE)
CODES = re.findall(r"`([^`\n]+(?:\n[^`\n]+)?)`", re.sub(r"(?s)```.*?```", "", PAGE))
# Names of this form that are no events.
OTHERS = {"my.yaml"}


def symptoms() -> list[str]:
    return re.split(r"(?m)^##+ ", PAGE)[1:]


@pytest.mark.parametrize("text", [one for one in symptoms() if "**" in one])
def test_a_symptom_has_what_why_and_what_to_do(text: str) -> None:
    heads = re.findall(r"(?m)^\*\*(.+?)\.\*\* ", text)

    assert heads == ["What you see", "Why", "What to do"]


def test_each_section_has_symptoms() -> None:
    sections = re.split(r"(?m)^## ", PAGE)[1:]

    assert len(sections) > 4
    assert [one.splitlines()[0] for one in sections if "\n### " not in one] == []


@pytest.mark.parametrize(("level", "event", "fields"), LINES)
def test_a_quoted_line_is_one_of_the_log(level: str, event: str, fields: str) -> None:
    calls = [one for one in logged() if (one.event, one.level) == (event, level)]
    quoted = {word.partition("=")[0] for word in shlex.split(fields)}

    assert calls != []
    named = [set(one.fields) - {"exc_info"} for one in calls]
    assert any(names <= quoted for names in named)


def test_events_that_the_page_names_exist() -> None:
    named = {one for one in CODES if re.fullmatch(r"[a-z-]+\.[a-z-]+", one)} - OTHERS

    assert len(named) > 25
    assert named - event_names() == set()


def test_commands_that_the_page_names_parse() -> None:
    commands = [" ".join(one.split()) for one in CODES if one.startswith("nri-resmgr ")]
    commands += re.findall(r"(?m)^# (nri-resmgr .*?) +#", PAGE)

    assert len(commands) > 10
    assert [one for one in commands if not parses(shlex.split(one)[1:])] == []
