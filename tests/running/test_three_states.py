"""What is decided, in force and recorded, as the commands of a real daemon show it."""

from __future__ import annotations

import asyncio
import re
from itertools import takewhile
from pathlib import Path
from typing import Any

import attrs
import pytest

from nri_resmgr.cli.explain import render_explanation
from nri_resmgr.values import CpuSet
from tests.app.node import asking_for, config
from tests.cli.command import nri_resmgr
from tests.host.read_only_mount import read_only
from tests.running.moved_containers import NAMES, KilledNode, killed_node
from tests.verification.cgroup_trees import MOUNT

pytestmark = [pytest.mark.process, pytest.mark.slow]


@attrs.frozen
class Shown:
    """CPUs of a container in the three states, and what waits, as `explain` has it."""

    decided: str
    kernel: str
    runtime: str
    waits_for: str
    lines: dict[str, str]


async def command(node: KilledNode, *words: str) -> str:
    """Return the output of a command that asks the daemon."""
    env = {"NRI_RESMGR_CONTROL_SOCKET": str(node.daemon.control)}
    done = await asyncio.to_thread(nri_resmgr, *words, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def explained(node: KilledNode, name: str) -> Shown:
    """Ask why a container has its CPUs, by the command and for its data."""
    text = await command(node, "explain", f"shop/{name}")
    answer: Any = await node.daemon.get(f"/v1/explain?pod=shop/{name}")
    assert render_explanation(answer).splitlines()[0] == text.splitlines()[0]
    (one,) = answer["containers"]
    container = one["container"]
    delivery = container["delivery"]
    rows = takewhile(lambda line: not line.startswith("why"), text.splitlines()[1:])
    return Shown(
        container["cpus"],
        one["inForce"]["cpus"],
        delivery["recorded"]["cpus"],
        delivery["waitsFor"],
        dict(line.split(maxsplit=1) for line in rows),
    )


async def records_pending(node: KilledNode) -> int:
    state: Any = await node.daemon.get("/v1/state")
    count: int = state["recordUpdates"]["count"]
    return count


async def test_a_record_that_is_behind_is_shown_beside_what_is_in_force(
    tmp_path: Path,
) -> None:
    async with killed_node(tmp_path) as node:
        now, before = node.places(), node.recorded()
        for has_restarted in (False, True):
            if has_restarted:
                await node.begin_again()
            for name in NAMES:
                shown = await explained(node, name)
                found = shown.decided, shown.kernel, shown.runtime
                assert found == (now[name], now[name], before[name])
                assert now[name] != before[name]
                assert shown.waits_for == ""
                assert shown.lines["decided"].startswith(f"CPUs {now[name]};")
                assert shown.lines["kernel"] == "as decided"
                assert shown.lines["runtime"].startswith(f"CPUs {before[name]};")
                assert "pending" not in shown.lines
            async with asyncio.timeout(60):  # until all are compared after a start
                while await records_pending(node) != len(NAMES):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.05)
            status = await command(node, "status")
            assert "2 record updates pending, the oldest for " in status
            assert not re.search(r"\d updates? pending", status)

        for name in NAMES:  # its own reply has the value
            await node.runtime.update_container(name, asking_for(0.5))
        for name in NAMES:
            shown = await explained(node, name)
            assert shown.runtime == shown.kernel == shown.decided == now[name]
            assert shown.lines["runtime"] == "as decided"
        assert "record update" not in await command(node, "status")


async def test_a_decision_that_waits_is_shown_beside_two_older_ones(
    tmp_path: Path,
) -> None:
    async with killed_node(tmp_path) as node:
        now, before = node.places(), node.recorded()
        first = CpuSet.parse(now["a"]).first
        reserved = f'{{reservedResources: {{cpu: "cpuset:{first}"}}}}'
        with read_only(node.cgroups.root / MOUNT):
            node.daemon.config.write_text(config(reserved))
            await node.daemon.post("/v1/reload")
            shown = await explained(node, "a")
            status = await command(node, "status")

        assert len({shown.decided, shown.kernel, shown.runtime}) == 3
        assert (shown.kernel, shown.runtime) == (now["a"], before["a"])
        assert first not in CpuSet.parse(shown.decided)
        assert shown.lines["decided"].startswith(f"CPUs {shown.decided};")
        assert shown.lines["kernel"].startswith(f"CPUs {now['a']};")
        assert shown.lines["runtime"].startswith(f"CPUs {before['a']};")
        assert "this runtime takes updates in replies only" in shown.lines["pending"]
        assert "read-only file system" in shown.lines["updates"]
        row = next(one for one in status.splitlines() if one.startswith("shop/a/a "))
        assert "pending for " in row
        assert shown.decided in row.split()

        await node.runtime.update_container("b", asking_for(0.5))  # its reply has both
        shown = await explained(node, "a")
        assert shown.kernel == shown.runtime == shown.decided
        assert shown.waits_for == ""
