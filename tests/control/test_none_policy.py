"""What is shown of a node on which no container is pinned."""

from __future__ import annotations

from pathlib import Path

from nri_resmgr.cli.render_status import render_status
from tests.control.daemon_parts import ask, asking, make_parts

NONE = "apiVersion: config.nri/v1alpha1\nkind: NonePolicy\n"


async def test_status_has_containers_and_no_pools(tmp_path: Path) -> None:
    parts = make_parts(document=NONE)
    parts.run("a", 2)
    async with asking(parts, tmp_path) as client:
        state = await ask(client, "/v1/state")

    (one,) = state["containers"]
    assert (state["pools"], one["cpus"], one["exclusive"]) == ([], "", "")
    assert one["pool"] == ""
    assert "granted" not in render_status(state)


async def test_explain_reports_that_the_policy_pins_no_container(
    tmp_path: Path,
) -> None:
    parts = make_parts(document=NONE)
    parts.run("a", 200)
    async with asking(parts, tmp_path) as client:
        found = await ask(client, "/v1/explain", pod="a")

    assert "the policy pins no container" in str(found)
