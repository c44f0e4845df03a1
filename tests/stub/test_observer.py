"""An observer receives the steps of sessions and the time of each answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_proto import Code
from nri_resmgr.stub import Container, Observer, Pod, RuntimeInfo, StubOptions
from nri_resmgr.stub.observer import OnMessage, Tapped
from nri_resmgr.testing import Runtime
from tests.stub.live import live
from tests.waiting import until


class Notes(Observer):
    """Records its calls."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.seconds: list[float] = []

    def registered(self, runtime: RuntimeInfo) -> None:
        self.lines.append(f"registered with {runtime.name}")

    def synchronized(self) -> None:
        self.lines.append("synchronized")

    def ended(self, why: str) -> None:
        self.lines.append(f"ended: {why}")

    def answered(self, method: str, seconds: float, code: int) -> None:
        self.lines.append(f"{method} {Code(code).name}")
        self.seconds.append(seconds)


class Moody:
    """Refuses containers."""

    def create_container(self, _pod: Pod, _container: Container) -> None:
        raise ValueError("not today")

    def stop_container(self, _pod: Pod, _container: Container) -> None:
        pass


def _no_tap(_: Tapped) -> None:
    pass


@pytest.mark.parametrize("tap", [None, _no_tap], ids=["alone", "beside a tap"])
async def test_sessions_and_answers_are_reported_in_order(
    tmp_path: Path, tap: OnMessage | None
) -> None:
    notes = Notes()
    options = StubOptions(observer=notes, on_message=tap)
    async with Runtime(tmp_path) as runtime, live(runtime, Moody(), options):
        await runtime.run_pod(Pod(id="p"))
        with pytest.raises(Exception, match="not today"):
            await runtime.create_container("p", Container(id="c"))

    assert notes.lines == [
        "Configure OK",
        f"registered with {runtime.profile.name}",
        "synchronized",
        "Synchronize OK",
        "CreateContainer UNKNOWN",
        "StopContainer OK",
        "ended: end of file",
    ]
    assert all(0 < seconds < 10 for seconds in notes.seconds)


async def test_a_runtime_that_is_not_there_is_reported(tmp_path: Path) -> None:
    notes = Notes()
    options = StubOptions(observer=notes)
    async with Runtime(tmp_path) as runtime, live(runtime, Moody(), options):
        await runtime.stop()
        await until(lambda: len(notes.lines) == 6)

    assert notes.lines[4] == "ended: end of file"
    assert notes.lines[5].startswith("ended: ")
