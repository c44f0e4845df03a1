"""`status` shows the parts that fail, and those that hang."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from nri_resmgr.app.background.supervisor import Part, Supervisor
from nri_resmgr.app.background.threads import in_thread
from nri_resmgr.cli.render_status import render_status
from tests.control.daemon_parts import ask, asking, make_parts
from tests.control.json_schema import mistakes
from tests.waiting import until


async def test_failing_and_hanging_parts_are_shown(tmp_path: Path) -> None:
    may_end = threading.Event()

    async def fail() -> None:
        raise MemoryError

    async def hang() -> None:
        await in_thread(lambda: may_end.wait(10))

    async def work() -> None:
        await asyncio.get_running_loop().create_future()

    supervisor = Supervisor()
    parts = (
        Part("checkpoint", fail, "containers are served"),
        Part("hotplug", hang, "the old CPUs are used", patience=0.01),
        Part("rdt", work, ""),
    )
    task = asyncio.create_task(supervisor.run(parts))
    made = make_parts(parts=lambda: supervisor.parts)
    async with asking(made, tmp_path) as client:
        await until(lambda: bool(parts[0].why and parts[1].hangs))
        state = await ask(client, "/v1/state")
    task.cancel()
    may_end.set()

    failing, hanging = state["parts"]
    shown = render_status(state)
    assert mistakes(state, "State") == []
    assert (failing["name"], failing["why"], failing["tries"]) == (
        *("checkpoint", "MemoryError"),
        1,
    )
    assert failing["since"] < failing["nextTry"]
    assert (hanging["name"], hanging["why"], hanging["since"]) == ("hotplug", "", "")
    assert hanging["hangsSeconds"] > 0
    assert "failing        checkpoint: MemoryError (since " in shown
    assert "meanwhile containers are served" in shown
    assert "hanging        hotplug: waits for the host for " in shown
