"""Answers report how writing the state goes."""

from __future__ import annotations

from pathlib import Path

import attrs

from nri_resmgr.cli.render_status import render_status
from tests.control.daemon_parts import ask, asking, make_parts
from tests.control.json_schema import mistakes


@attrs.frozen
class Kept:
    """How writing the state went."""

    writes: int = 7
    failures: int = 2
    last_size: int = 4096
    last_seconds: float = 0.5
    is_failing: bool = True


async def test_how_writing_the_state_goes_is_reported(tmp_path: Path) -> None:
    async with asking(make_parts(checkpoints=Kept()), tmp_path) as client:
        state = await ask(client, "/v1/state")

    reported = {
        "writes": 7,
        "failures": 2,
        "isFailing": True,
        "lastBytes": 4096,
        "lastSeconds": 0.5,
    }
    assert (state["checkpoint"], mistakes(state, "State")) == (reported, [])
    assert "state          not written" in render_status(state)
