"""When the state is written, and what happens where it cannot be."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.background.supervisor import Part, Supervisor
from nri_resmgr.app.plugin.changes.reconfiguration import change_machine
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.checkpoint.decode import read_checkpoint
from nri_resmgr.checkpoint.encode import CHECKPOINT_NAME
from nri_resmgr.checkpoint.writer import CheckpointWriter, StateNotWritten
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.stub import Container, Pod
from nri_resmgr.topology.synthetic import parse_spec
from tests.waiting import until

POD = Pod(id="p", name="p", uid="u")


def kept_in(state: StateDir) -> list[str]:
    text = state.read(CHECKPOINT_NAME)
    return [] if text is None else list(read_checkpoint(text).rows.get("container", ()))


Node = Callable[[StateDir], tuple[ResourcePolicy, CheckpointWriter]]


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    """Make nodes whose writers are kept running."""
    running: list[asyncio.Task[None]] = []

    def make(state: StateDir) -> tuple[ResourcePolicy, CheckpointWriter]:
        keeper = CheckpointWriter(state, check=0.02)
        policy = ResourcePolicy(parse_spec("1s4c1t"), observers=[keeper])
        keeper.begin(policy)
        part = Part("checkpoint", keeper.run, "it is not written")
        running.append(asyncio.create_task(Supervisor().run([part])))
        return policy, keeper

    yield make
    for task in running:
        task.cancel()
    await asyncio.wait(running)


def come(policy: ResourcePolicy, *names: str) -> None:
    for name in names:
        policy.create_container(POD, Container(id=name, name=name))


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDir]:
    opened = StateDir.open(str(tmp_path / "state"))
    yield opened
    opened.close()


async def test_nothing_is_written_before_the_first_synchronization(
    node: Node, state: StateDir
) -> None:
    state.write(CHECKPOINT_NAME, "of an earlier process")
    policy, keeper = node(state)
    change_machine(policy, parse_spec("1s2c1t"))
    await asyncio.sleep(0.02)
    keeper.close()

    assert state.read(CHECKPOINT_NAME) == "of an earlier process"


async def test_a_single_change_is_written_at_once(node: Node, state: StateDir) -> None:
    policy, keeper = node(state)
    policy.synchronize((), ())
    come(policy, "a")
    await until(lambda: kept_in(state) == ["a"])
    await asyncio.sleep(0.02)
    policy.start_container(POD, Container(id="a"))
    await asyncio.sleep(0.02)

    # The second one changed nothing.
    assert (keeper.writes, keeper.failures) == (1, 0)
    assert keeper.last_size == len(state.read(CHECKPOINT_NAME) or "")
    keeper.close()


@pytest.mark.slow  # waits for real timers
async def test_many_changes_are_written_at_intervals_and_at_their_end(
    node: Node, state: StateDir
) -> None:
    policy, keeper = node(state)
    policy.synchronize((), ())
    begun = time.monotonic()
    for number in range(300):
        come(policy, f"c{number}")
        await asyncio.sleep(0.001)
    seconds = time.monotonic() - begun
    await until(lambda: len(kept_in(state)) == 300)
    keeper.close()

    assert 2 <= keeper.writes <= 3 + seconds / 0.1


async def test_pending_changes_are_written_at_the_end(
    node: Node, state: StateDir
) -> None:
    policy, keeper = node(state)
    policy.synchronize((), ())
    await until(lambda: keeper.writes == 1)
    come(policy, "a", "b")
    keeper.close()

    assert kept_in(state) == ["a", "b"]


class SlowDir(StateDir):
    """On a disk that takes its time."""

    seconds = 0.3

    def write(self, name: str, text: str) -> None:
        time.sleep(self.seconds)
        super().write(name, text)


@pytest.mark.slow  # waits for real timers
async def test_a_slow_disk_delays_no_request(node: Node, tmp_path: Path) -> None:
    state = SlowDir.open(str(tmp_path / "state"))
    policy, keeper = node(state)
    policy.synchronize((), ())
    longest = 0.0
    for number in range(100):
        before = time.monotonic()
        come(policy, f"c{number}")
        await asyncio.sleep(0)
        longest = max(longest, time.monotonic() - before)
        await asyncio.sleep(0.005)
    keeper.close()

    assert longest < SlowDir.seconds / 2
    assert len(kept_in(state)) == 100
    state.close()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() or not mounted("-t", "tmpfs", "-o", _SMALL, "tmpfs", str(folder)):
        pytest.skip("no right to mount a file system")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


_SMALL = "size=64k,mode=700"


def mounted(*words: str) -> bool:
    done = subprocess.run(["mount", *words], capture_output=True, check=False)
    return done.returncode == 0


async def test_a_full_disk_and_its_end_are_logged_once_each(
    node: Node, small: Path
) -> None:
    state = StateDir.open(str(small))
    policy, keeper = node(state)
    policy.synchronize((), ())
    await until(lambda: keeper.writes == 1)
    (small / "ballast").write_bytes(b"x" * (56 << 10))
    with capture_logs() as lines:
        come(policy, *(f"c{number}" for number in range(60)))
        await until(lambda: keeper.failures > 1)
        before = kept_in(state)
        (small / "ballast").unlink()
        await until(lambda: len(kept_in(state)) == 60)
        await until(lambda: keeper.failures > 0 and not keeper.is_failing)
    keeper.close()
    state.close()

    logged = [one for one in lines if one["log_level"] == "error"]
    assert before == []
    assert [one["event"] for one in logged] == ["part.failed"]
    assert logged[0]["why"] == f"{small}/{CHECKPOINT_NAME}: no space left on device"


async def test_requests_are_served_with_a_read_only_disk(
    node: Node, small: Path
) -> None:
    state = StateDir.open(str(small))
    policy, keeper = node(state)
    policy.synchronize((), ())
    await until(lambda: keeper.writes == 1)
    assert mounted("-o", "remount,ro", str(small))
    come(policy, "a")
    await until(lambda: keeper.failures > 0)
    keeper.close()
    state.close()

    assert list(policy.state.ledger.entries) == ["a"]


async def test_a_caller_can_wait_for_the_write_of_its_change(
    node: Node, state: StateDir
) -> None:
    policy, keeper = node(state)
    policy.synchronize([], [])
    for name in ("a", "b", "c"):
        come(policy, name)
        await keeper.written(30)
        assert name in kept_in(state)
    writes = keeper.writes
    await keeper.written(30)
    assert keeper.writes == writes


async def test_a_failed_write_does_not_count_as_written(
    node: Node, state: StateDir, tmp_path: Path
) -> None:
    policy, keeper = node(state)
    policy.synchronize([], [])
    await keeper.written(30)
    # A folder of the name cannot be replaced by a file.
    path = tmp_path / "state" / CHECKPOINT_NAME
    path.unlink()
    (path / "inside").mkdir(parents=True)
    come(policy, "a")
    with pytest.raises(StateNotWritten):
        await keeper.written(30)


class Unwritable(str):
    """A name of which no line can be made."""

    __slots__ = ()


async def test_a_fault_while_lines_are_made_is_counted_and_passes(
    node: Node, state: StateDir
) -> None:
    policy, keeper = node(state)
    policy.synchronize([], [])
    come(policy, "a")
    await keeper.written(30)
    faulty = Pod(id="q", name=Unwritable("q"), uid="u")
    with capture_logs() as lines:
        policy.create_container(faulty, Container(id="b", name="b"))
        with pytest.raises(StateNotWritten):
            await keeper.written(30)
        counted, was_failing, kept = keeper.failures, keeper.is_failing, kept_in(state)
        policy.remove_container(faulty, Container(id="b", name="b"))
        come(policy, "c")
        await until(lambda: kept_in(state) == ["a", "c"])

    assert counted > 0
    assert (was_failing, keeper.is_failing, kept) == (True, False, ["a"])
    (failed,) = [one for one in lines if one["event"] == "part.failed"]
    assert failed["part"] == "checkpoint"
    assert failed["why"].startswith("NotImplementedError: ")


async def test_a_fault_while_the_last_lines_are_made_is_logged_and_counted(
    node: Node, state: StateDir
) -> None:
    policy, keeper = node(state)
    policy.synchronize([], [])
    await keeper.written(30)
    before = keeper.failures
    policy.create_container(
        Pod(id="q", name=Unwritable("q"), uid="u"), Container(id="b", name="b")
    )
    with capture_logs() as lines:
        keeper.close()

    assert keeper.failures == before + 1
    assert [one["event"] for one in lines] == ["state.not-written"]
