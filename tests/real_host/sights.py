"""CPUs and memory that containers should see after each step of a story."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.policy.story_outcomes import quoted
from tests.real_host.cri import CallFailed
from tests.real_host.stage import Stage

Sights: TypeAlias = dict[str, str]
"""CPUs and memory nodes by container; empty for those left alone."""


def play(stage: Stage, expected: Sights, step: Mapping[str, Any]) -> None:
    """Perform a step, and wait until all containers see what the story says."""
    if refusal := step.get("refused"):
        with pytest.raises(CallFailed) as refused:
            stage.play(step)
        assert quoted(refused.value.details, refusal) == refusal
    else:
        stage.play(step)
    go_on(expected, step)

    wanted = {name: it or all_there_is() for name, it in expected.items()}
    seen = stage.seen()
    # Afterwards: it may have ended while they were looked at.
    for name in stage.ended_early():
        wanted.pop(name, None)
        seen.pop(name, None)
    assert seen == wanted


def go_on(expected: Sights, step: Mapping[str, Any]) -> None:
    """Expect what a step says from now on."""
    if "gets" in step:
        name = step.get("create") or step["update"]
        expected[name] = step["gets"]
    for name, news in step.get("updates", {}).items():
        expected[name] = repeated(expected[name], news)
    expected.pop(step.get("stop", ""), None)


def repeated(before: str, news: str) -> str:
    """Replace what *news* lists: ``6-7``, `` on 0-1``, ``8,12 on 0-4 with 512``."""
    cpus, _, mems = before.partition(" on ")
    new_cpus, _, new_mems = news.partition(" with ")[0].partition(" on ")
    return f"{new_cpus or cpus} on {new_mems or mems}"


def all_there_is() -> str:
    """CPUs and memory nodes of a process without pinning."""
    cpus = Path("/sys/devices/system/cpu/online").read_text()
    mems = Path("/sys/devices/system/node/has_memory").read_text()
    return f"{cpus.strip()} on {mems.strip()}"
