"""A fault that passes ends nothing: each part works again, or reports why not."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final

import attrs
import pytest

from nri_resmgr.checkpoint.decode import read_checkpoint
from nri_resmgr.checkpoint.encode import CHECKPOINT_NAME
from nri_resmgr.cli.workload import Workload
from nri_resmgr.control.client import Client
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import QosClass
from tests.daemon.daemon_process import RunningDaemon, daemon
from tests.daemon.documents import document
from tests.faults.thread_limits import Limit, as_user, set_limit, threads_limit

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(600)]

MACHINE: Final = parse_spec("1s1n4c1t")

# After the fault has passed; the same in docs/faults.md.
SOON: Final = 30.0  # seconds

# The daemon's own limits at the end are 5 s for the host and 2 s for the state.
AT_THE_END: Final = 10.0  # seconds

ONLINE: Final = "sys/devices/system/cpu/online"

# New descriptors are refused by their number, however many are open. Standard input,
# output and error are always open, so each new one is above.
STANDARD: Final = 3

LOOKS: Final = 20  # at descriptors and threads, of which some come and go
LOOK: Final = 0.05  # seconds between two of them


@attrs.frozen(eq=False)
class Place:
    """A daemon with all of its files."""

    folder: Path
    running: RunningDaemon
    user: int

    @property
    def pid(self) -> int:
        return self.running.process.pid

    @property
    def config(self) -> Path:
        return self.folder / "config.yaml"

    @property
    def descriptors(self) -> int:
        return len(tuple(Path(f"/proc/{self.pid}/fd").iterdir()))

    @property
    def threads(self) -> int:
        return len(tuple(Path(f"/proc/{self.pid}/task").iterdir()))

    def cpus(self, container: str) -> str:
        """Return the CPUs that the runtime has of a container."""
        found = self.running.runtime.container(container).resources.cpu
        return found.cpus if found else ""

    def checkpointed(self) -> set[str]:
        """Return the containers in the checkpoint."""
        with suppress(FileNotFoundError):
            text = (self.folder / "state" / CHECKPOINT_NAME).read_text()
            return set(read_checkpoint(text).rows.get("container", ()))
        return set()

    async def status(self) -> dict[str, Any]:
        client = Client(str(self.folder / "control" / "socket"))
        return await asyncio.to_thread(client.get, "/v1/state")

    async def parts(self) -> dict[str, dict[str, Any]]:
        """Return the parts with problems."""
        return {one["name"]: one for one in (await self.status())["parts"]}

    async def place(self, name: str) -> str:
        """Run a container; return its id."""
        one = Workload(name, QosClass.BURSTABLE, 500)
        await self.running.place(one)
        return one.container.id

    def limit(self, what: str, most: int | None) -> None:
        """Set a limit of the daemon; None for as much as there is."""
        set_limit(self.pid, self.user, what, most)

    async def end(self) -> tuple[int | None, float]:
        """End it; return its status and the seconds that it took."""
        begun = monotonic()
        self.running.process.send_signal(signal.SIGTERM)
        status = await asyncio.wait_for(self.running.process.wait(), 60)
        return status, monotonic() - begun


@asynccontextmanager
async def at(
    folder: Path, user: int = 0, before: Callable[[Path], object] = lambda _: None
) -> AsyncIterator[Place]:
    config = folder / "config.yaml"
    config.write_text(document(1))
    flags = (
        *("--config-file", str(config), "--state-dir", str(folder / "state")),
        *("--control-socket", str(folder / "control" / "socket")),
        *("--http-endpoint", "127.0.0.1:0", "--run-dir", str(folder / "run")),
    )
    prefix = as_user(user)
    async with daemon(folder, MACHINE, *flags, prefix=prefix, before=before) as running:
        await running.line("control.listening")
        await running.line("http.listening")
        yield Place(folder, running, user)


@pytest.fixture(params=["user", "cgroup"])
def limit(request: pytest.FixtureRequest) -> Iterator[Limit]:
    """Have a limit on threads that holds for nothing but the daemon."""
    with threads_limit(request.param) as found:
        yield found


async def fewest(count: Callable[[], int]) -> int:
    """Return the smallest count of a second: of what stays open."""
    found = []
    for _ in range(LOOKS):
        found.append(count())
        await asyncio.sleep(LOOK)
    return min(found)


async def failed(place: Place, *parts: str) -> dict[str, dict[str, Any]]:
    """Wait until these parts have failed, beside others; return their lines."""
    async with asyncio.timeout(SOON):
        while True:
            lines = {
                line["part"]: line
                for line in place.running.lines()
                if line["event"] == "part.failed"
            }
            if set(parts) <= lines.keys():
                return lines
            await asyncio.sleep(LOOK)


async def soon(condition: Callable[[], bool], within: float = SOON) -> None:
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.05)


async def all_well(place: Place) -> None:
    async with asyncio.timeout(SOON):
        while await place.parts():  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.2)


async def works(place: Place, name: str, cpu: int) -> None:
    """Check that a new container is in the checkpoint, and a new document in force."""
    before = (await place.status())["configuration"]["generation"]
    key = await place.place(name)
    await soon(lambda: key in place.checkpointed())
    place.config.write_text(document(cpu))
    async with asyncio.timeout(SOON):
        while (await place.status())["configuration"]["generation"] == before:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)


async def test_without_threads_for_a_while(tmp_path: Path, limit: Limit) -> None:
    async with at(tmp_path, limit.user) as place:
        await works(place, "before", 2)
        threads = await fewest(lambda: place.threads)
        limit.set(place.pid)
        key = await place.place("during")
        place.config.write_text(document(1))
        await failed(place, "checkpoint", "configuration")
        parts = await place.parts()
        assert (await place.status())["checkpoint"]["failures"] > 0
        limit.lift(place.pid)
        await soon(lambda: key in place.checkpointed())
        await all_well(place)
        await works(place, "after", 2)
        await soon(lambda: place.threads <= threads)
        lines = [
            line["part"]
            for line in place.running.lines()
            if line["event"] == "part.failed"
        ]
        status, _ = await place.end()

    assert parts["checkpoint"]["why"] == "RuntimeError: can't start new thread"
    assert {"checkpoint", "configuration"} <= parts.keys()
    assert len(lines) == len(set(lines))  # once each
    assert status == 0


async def test_an_end_without_threads(tmp_path: Path, limit: Limit) -> None:
    async with at(tmp_path, limit.user) as place:
        limit.set(place.pid)
        key = await place.place("last")
        status, seconds = await place.end()

        assert key in place.checkpointed()
        assert status == 0
        assert seconds < AT_THE_END


async def test_without_descriptors_for_a_while(tmp_path: Path) -> None:
    async with at(tmp_path) as place:
        await works(place, "before", 2)
        descriptors = await fewest(lambda: place.descriptors)
        place.limit("nofile", STANDARD)
        key = await place.place("during")
        lines = await failed(place, "checkpoint")
        await asyncio.sleep(5)
        place.limit("nofile", None)
        await soon(lambda: key in place.checkpointed())
        await all_well(place)
        await works(place, "after", 1)
        await soon(lambda: place.descriptors <= descriptors)
        status, _ = await place.end()

    assert status == 0
    assert "too many open files" in lines["checkpoint"]["why"]


async def test_a_configuration_that_becomes_a_folder(tmp_path: Path) -> None:
    async with at(tmp_path) as place:
        await works(place, "before", 2)
        descriptors = await fewest(lambda: place.descriptors)
        place.config.unlink()
        place.config.mkdir()
        line = await place.running.line("configuration.rejected")
        await asyncio.sleep(5)
        assert await fewest(lambda: place.descriptors) <= descriptors
        place.config.rmdir()
        await works(place, "after", 1)

    assert "is a directory" in line["why"]


@pytest.mark.parametrize("what", ["the folder", "its lock"])
async def test_a_state_directory_without(tmp_path: Path, what: str) -> None:
    async with at(tmp_path) as place:
        key = await place.place("web")
        await soon(lambda: key in place.checkpointed())
        state = tmp_path / "state"
        if what == "the folder":
            shutil.rmtree(state)
            # Without another decision.
            await soon(lambda: key in place.checkpointed())
        else:
            (state / "lock").unlink()
        second = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "nri_resmgr", "run", "--reset-policy"),
            *("--state-dir", str(state)),
            stderr=subprocess.PIPE,
        )
        _, complaint = await second.communicate()
        await works(place, "after", 2)

    assert second.returncode == 1
    assert "is in use by " in complaint.decode()


async def test_a_file_of_the_host_that_hangs(tmp_path: Path) -> None:
    online = tmp_path / "host" / ONLINE
    async with at(tmp_path) as place:
        await works(place, "before", 2)
        text = online.read_text()
        online.unlink()
        os.mkfifo(online)
        async with asyncio.timeout(60):
            while not (parts := await place.parts()):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.2)
        metrics = await scraped(place)
        await works(place, "during", 1)
        waiting, fifo = online, tmp_path / "fifo"
        waiting.rename(fifo)
        online.write_text(text)
        await asyncio.to_thread(fifo.write_text, text)  # the reader goes on
        await all_well(place)
        await works(place, "after", 2)

    assert list(parts) == ["hotplug"]
    assert parts["hotplug"]["hangsSeconds"] >= 10
    assert parts["hotplug"]["why"] == ""
    assert metrics['nri_resmgr_part_hanging_seconds{part="hotplug"}'] >= 10
    assert metrics['nri_resmgr_part_hanging_seconds{part="checkpoint"}'] == 0


async def test_a_cpu_that_comes_while_hotplug_is_not_followed(
    tmp_path: Path, limit: Limit
) -> None:
    online = tmp_path / "host" / ONLINE
    async with at(tmp_path, limit.user) as place:
        whole = online.read_text()
        key = await place.place("shared")
        limit.set(place.pid)
        online.write_text("0-2\n")
        fewer = await place.running.line("topology.changed")  # by the thread before
        await failed(place, "hotplug")
        await soon(lambda: place.cpus(key) == "0-2")
        online.write_text(whole)
        limit.lift(place.pid)
        more = await place.running.line("topology.changed", 1)
        await soon(lambda: place.cpus(key) == "0-3")
        await all_well(place)
        await works(place, "after", 2)

    assert (fewer["online"], more["online"]) == ("0-2", "0-3")


async def test_an_end_while_a_file_of_the_host_hangs(tmp_path: Path) -> None:
    online = tmp_path / "host" / ONLINE
    async with at(tmp_path) as place:
        online.unlink()
        os.mkfifo(online)
        await asyncio.sleep(11)  # until it is polled
        key = await place.place("last")
        status, seconds = await place.end()

        assert key in place.checkpointed()
    assert status == 0
    assert seconds < AT_THE_END


KUBELET: Final = "var/lib/kubelet/cpu_manager_state"


async def test_a_file_of_the_kubelet_that_hangs_from_the_start(tmp_path: Path) -> None:
    def block(root: Path) -> None:
        (root / KUBELET).parent.mkdir(parents=True)
        os.mkfifo(root / KUBELET)

    async with at(tmp_path, before=block) as place:
        await works(place, "during", 2)
        status, seconds = await place.end()

    assert status == 0
    assert seconds < AT_THE_END


async def test_signals_that_have_no_meaning(tmp_path: Path) -> None:
    async with at(tmp_path) as place:
        for number in (signal.SIGUSR2, signal.SIGHUP, signal.SIGUSR1, signal.SIGPIPE):
            place.running.process.send_signal(number)
        await works(place, "after", 2)
        status, _ = await place.end()

    assert status == 0


async def scraped(place: Place) -> dict[str, float]:
    """Return the daemon's metrics about its parts."""
    line = await place.running.line("http.listening")
    host, _, port = line["endpoint"].rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
    text = (await reader.read()).decode()
    writer.close()
    pairs = (one.rsplit(" ", 1) for one in text.splitlines() if "_part_" in one)
    return {name: float(value) for name, value in pairs if not name.startswith("#")}
