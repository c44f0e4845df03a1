"""The agent asks often until the daemon has judged all that was handed over."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

from nri_resmgr.agent.api import Access
from tests.agent.adjusted import KIND, PATH, adjustment
from tests.agent.fake_api_server import FakeApiServer, Json
from tests.agent.test_agent import NODE
from tests.agent.test_version_skew import condition, entries, node_with
from tests.waiting import until

# Less than the half minute between two questions without a hurry.
_SOON: Final = 20.0  # seconds

_LATER: Final = 3
"""Answers before the one that has the verdict."""


@pytest.mark.process
@pytest.mark.timeout(600)
async def test_a_verdict_that_comes_after_other_changes_is_reported_soon(
    server: FakeApiServer, access: Access, tmp_path: Path
) -> None:
    answers: list[Any] = []
    is_late = False

    def edit(path: str, answer: Json) -> Json:
        if path != "/v1/agent" or not is_late:
            return answer
        answers.append(answer["adjustments"])
        if len(answers) <= _LATER:
            # The daemon has not read the file, and something else has changed.
            answer["adjustments"] = before
            answer["configuration"]["why"] = str(len(answers))
        return answer

    async with node_with(edit, server, access, tmp_path):
        await until(lambda: condition(server, "AdjustmentsApplied")[0] == "True")
        before = {"digest": "", "objects": [], "errors": {}, "problem": ""}
        is_late = True
        server.put(PATH, adjustment("next", [NODE]))

        async with asyncio.timeout(_SOON):
            while len(answers) <= _LATER:  # noqa: ASYNC110 - of a process
                await asyncio.sleep(0.05)
        await until(lambda: NODE in entries(server, KIND, "next"))
