"""Work after replies: in order, in pieces, with requests in between."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Final

import msgspec
import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.metrics.counters import Metrics
from nri_resmgr.app.observers.after_reply import AT_ONCE, DeferredWork
from nri_resmgr.app.observers.observer import DecisionObserver
from nri_resmgr.app.observing.history import History
from nri_resmgr.app.observing.tracing import Tracing
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.checkpoint.writer import CheckpointWriter
from nri_resmgr.daemon.parts import Reconcilers
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.recordings.entries import Header
from nri_resmgr.recordings.file import RecordingFile
from nri_resmgr.recordings.recorder import Recorder
from nri_resmgr.stub import Container, LinuxCpu, LinuxResources, Pod
from nri_resmgr.stub.convert import from_message
from nri_resmgr.topology.synthetic import parse_spec
from tests.app.arriving import Requests
from tests.benchmarks.workload import container_of, pod_of
from tests.waiting import until

CONTAINERS: Final = 400

# Calls of functions for a container: some 60 for a line of the log, 100 for a file, 150
# for a decision. Between two requests there may be some for each of a few containers,
# and a look at each of all.
MOST_CALLS: Final = 10 * CONTAINERS

# Most containers do not fit on the small one, and fall back to what is there.
SMALL: Final = parse_spec("1s8c1t")
LARGE: Final = parse_spec("2s64c2t memory=16Ti")

word: ContextVar[str] = ContextVar("word", default="")


class Last(DecisionObserver):
    """Knows when all others have observed."""

    def __init__(self) -> None:
        self.decisions = 0

    def decided(self, *_: object) -> None:
        self.decisions += 1


def observers_of(folder: Path, last: Last) -> list[DecisionObserver]:
    """All observers of a daemon; the log and published files are the plugin's own."""
    header = Header("1", 0, parse_spec("1s2c1t"), False, "auto", False)
    return [
        History(),
        Metrics(),
        Tracing(),
        Recorder(RecordingFile(str(folder / "recording"), 1 << 30), header),
        CheckpointWriter(StateDir.open(str(folder / "state"))),
        *Reconcilers().observers,
        last,
    ]


def node() -> tuple[list[Pod], list[Container]]:
    """Make pods of a container each."""
    numbers = range(CONTAINERS)
    return (
        [from_message(pod_of(number)) for number in numbers],
        [from_message(container_of(number, SMALL)) for number in numbers],
    )


def resized(container: Container) -> Container:
    cpu = LinuxCpu(shares=205, quota=20_000, period=100_000)
    linux = msgspec.structs.replace(
        container.linux or pytest.fail("no linux"), resources=LinuxResources(cpu=cpu)
    )
    return msgspec.structs.replace(container, linux=linux)


@pytest.mark.parametrize("what", ["first", "gone", "resized"])
async def test_requests_go_first_after_a_synchronize(what: str, tmp_path: Path) -> None:
    last, (pods, containers) = Last(), node()
    for number in range(CONTAINERS):  # of an earlier process
        name = f"gone-{number}" if what == "gone" else containers[number].id
        (tmp_path / "run/containers" / name).mkdir(parents=True)
    plugin = ResourcePolicy(
        LARGE if what == "resized" else SMALL,
        plugin_options=PluginOptions(run_dir=str(tmp_path / "run")),
        observers=observers_of(tmp_path, last),
    )
    with capture_logs() as lines:
        if what == "resized":
            plugin.synchronize(pods, containers)
            await until(lambda: last.decisions == 1)
            containers = [resized(one) for one in containers]
        before, requests = last.decisions, Requests()
        plugin.synchronize(pods, containers)
        refused = [one for one in lines if one["event"] == "resize.refused"]
        resizes = CONTAINERS - len(refused) if what == "resized" else 0
        with requests.arriving():
            await until(lambda: last.decisions == before + 1 + resizes)

    assert requests.served > CONTAINERS / AT_ONCE
    assert requests.most < MOST_CALLS


async def test_requests_that_arrive_during_a_piece_precede_the_next_one() -> None:
    loop, done = asyncio.get_running_loop(), list[str]()
    ours, theirs = socket.socketpair()

    def steps() -> Iterator[None]:
        for number in range(3 * AT_ONCE):
            done.append(str(number))
            if number == AT_ONCE // 2:
                theirs.send(b"?")
            yield

    with ours, theirs:
        loop.add_reader(ours, lambda: done.append(ours.recv(1).decode()))
        DeferredWork().add(steps())
        await until(lambda: str(3 * AT_ONCE - 1) in done)
        loop.remove_reader(ours)

    assert done.index("?") == AT_ONCE
    assert [one for one in done if one != "?"] == [str(n) for n in range(3 * AT_ONCE)]


async def test_later_work_waits_for_earlier_work_and_keeps_its_context() -> None:
    work, done = DeferredWork(), list[str]()

    def steps() -> Iterator[None]:
        for _ in range(2 * AT_ONCE):
            done.append(word.get())
            yield

    for name in ("a", "b"):
        word.set(name)
        work.add(steps())
    word.set("c")
    assert done == []
    await until(lambda: len(done) == 4 * AT_ONCE)

    assert done == ["a"] * 2 * AT_ONCE + ["b"] * 2 * AT_ONCE


async def test_work_that_fails_ends_only_itself() -> None:
    work, done, faults = DeferredWork(), list[str](), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, why: faults.append(why))

    def fails() -> Iterator[None]:
        yield
        raise MemoryError

    def works() -> Iterator[None]:
        done.append("worked")
        yield

    work.add(fails())
    work.add(works())
    await until(lambda: bool(done))

    assert len(faults) == 1


async def test_the_end_of_the_process_observes_all_decisions() -> None:
    last, (pods, containers) = Last(), node()
    plugin = ResourcePolicy(SMALL, observers=[last])
    with capture_logs() as lines:
        plugin.synchronize(pods, containers)
        await asyncio.sleep(0)
        before = len(lines)
        plugin.observers.finish()

    rules = next(one["rules"] for one in lines if one["event"] == "node.synchronized")
    assert before < rules["fell-back"]
    assert (
        len([one for one in lines if one["event"] == "container.fell-back"])
        == (rules["fell-back"])
    )
    assert last.decisions == 1
