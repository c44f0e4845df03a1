"""Probes of the real daemon are answered in time, whatever other clients do."""

from __future__ import annotations

import asyncio
import http.client
import os
import resource
import socket
import struct
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.cli.workload import Workload
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import QosClass
from tests.cli.command import nri_resmgr
from tests.daemon.daemon_process import RunningDaemon, daemon
from tests.daemon.hostile_clients import (
    Misbehaviour,
    besieged,
    endless,
    half_closed,
    idle,
    slow,
    unread,
)

pytestmark = pytest.mark.process

MACHINE: Final = parse_spec("2s2n4c2t")
PROBES: Final = 12
TIMEOUT: Final = 1.0  # seconds, as a kubelet has it by default
SCRAPE: Final = 10.0  # seconds, as Prometheus has it by default
BUSY: Final = 60.0  # seconds for a probe on a busy machine
STARVED: Final = 0.2  # seconds without a CPU after which a failure proves nothing
REPETITIONS: Final = 20
LISTENS: Final = "0A"  # TCP_LISTEN in /proc/PID/net/tcp
MOST_MEMORY: Final = 16 << 20  # bytes for clients; 3 MiB were measured
ENDPOINTS: Final = (
    *("--http-endpoint", "127.0.0.1:0"),
    *("--health-endpoint", "127.0.0.1:0"),
)

OPEN: Final = (
    "session.synchronized",
    "health.listening",
    "http.listening",
    "control.listening",
)

EVERY: Final = (idle, slow, half_closed, unread, endless)
NAMES: Final = tuple(one.__name__ for one in EVERY)


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningDaemon]:
    control = str(tmp_path / "run" / "control.sock")
    async with daemon(
        tmp_path, MACHINE, *ENDPOINTS, "--control-socket", control
    ) as found:
        # All that it holds open: descriptors are counted from here.
        for event in OPEN:
            await found.line(event)
        yield found


async def address_of(running: RunningDaemon, event: str) -> tuple[str, int]:
    host, _, port = (await running.line(event))["endpoint"].rpartition(":")
    return host, int(port)


def status_of(address: tuple[str, int], path: str, seconds: float) -> int | str:
    """Ask as a kubelet does: the timeout is that of the whole request."""
    begin = time.monotonic()
    client = http.client.HTTPConnection(*address, timeout=seconds)
    try:
        client.request("GET", path, headers={"User-Agent": "kube-probe/1.37"})
        answer = client.getresponse()
        answer.read()
    except OSError as error:
        return str(error)
    finally:
        client.close()
    return answer.status if time.monotonic() - begin < seconds else "too late"


async def asked(address: tuple[str, int], path: str, seconds: float) -> int | str:
    return await asyncio.to_thread(status_of, address, path, seconds)


async def probed(running: RunningDaemon) -> list[int | str]:
    """Probe the health endpoint as a kubelet does, some times."""
    address = await address_of(running, "health.listening")
    found = []
    for number in range(PROBES):
        path = "/readyz" if number % 3 == 2 else "/healthz"
        found.append(await asyncio.to_thread(fed_status, running, address, path))
        await asyncio.sleep(0.1)
    return found


def fed_status(
    running: RunningDaemon, address: tuple[str, int], path: str
) -> int | str:
    """Probe; time for which the daemon or the client waited for a CPU is not counted.

    With a load of 20 the endless clients make the daemon wait two seconds for its turns
    during each probe, and use 0.15 s of a CPU. A connection that fails after such a
    wait proves nothing either.
    """
    pid = running.process.pid
    tasks = (f"/proc/{pid}/task/{pid}", "/proc/thread-self")
    for _ in range(REPETITIONS):
        before, begin = sum(map(seconds_without_cpu, tasks)), time.monotonic()
        found = status_of(address, path, BUSY)
        seconds = time.monotonic() - begin
        starved = sum(map(seconds_without_cpu, tasks)) - before
        if isinstance(found, int) or starved < STARVED:
            break
    return found if seconds - starved < TIMEOUT else "too late"


def seconds_without_cpu(task: str) -> float:
    """Return how long a thread was ready to run, and did not: proc(5)."""
    return int(Path(task, "schedstat").read_text().split()[1]) / 1e9


def descriptors(running: RunningDaemon) -> list[int]:
    folder = Path(f"/proc/{running.process.pid}/fd")
    return sorted(int(one.name) for one in folder.iterdir())


def highest_memory(running: RunningDaemon) -> int:
    """Return the most memory that it has had, in bytes."""
    lines = Path(f"/proc/{running.process.pid}/status").read_text().splitlines()
    (found,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(found.split()[1]) << 10


async def until_as_few(running: RunningDaemon, number: int) -> None:
    """Wait until there are no more descriptors than there were."""
    async with asyncio.timeout(20):
        while len(descriptors(running)) > number:  # noqa: ASYNC110 - of a process
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("misbehave", EVERY, ids=NAMES)
async def test_no_client_of_the_metrics_or_of_health_fails_a_probe(
    running: RunningDaemon, misbehave: Misbehaviour
) -> None:
    await running.place(Workload("many", QosClass.BURSTABLE, 500))
    metrics = await address_of(running, "http.listening")
    health = await address_of(running, "health.listening")
    assert await asked(metrics, "/metrics", SCRAPE) == 200
    before, memory = len(descriptors(running)), highest_memory(running)
    for besieged_one in (metrics, health):
        for number in (40, 400):
            async with besieged(besieged_one, number, misbehave):
                assert await probed(running) == [200] * PROBES
                assert await asked(metrics, "/metrics", SCRAPE) == 200
            await until_as_few(running, before)

    assert highest_memory(running) - memory < MOST_MEMORY


@pytest.mark.parametrize("number", [40, 400])
@pytest.mark.parametrize("misbehave", EVERY, ids=NAMES)
async def test_idle_clients_do_not_block_the_control_socket(
    running: RunningDaemon, tmp_path: Path, number: int, misbehave: Misbehaviour
) -> None:
    path = str(tmp_path / "run" / "control.sock")
    before = len(descriptors(running))
    async with besieged(path, number, misbehave):
        for command in ("status", "events", "log"):
            done = await asyncio.to_thread(
                nri_resmgr, command, env={"NRI_RESMGR_CONTROL_SOCKET": path}
            )
            assert (done.returncode, done.stderr) == (0, "")
    await until_as_few(running, before)


async def test_without_free_descriptors_the_server_waits_and_recovers(
    running: RunningDaemon,
) -> None:
    """The probe fails only as long as no descriptor is free."""
    health = await address_of(running, "health.listening")
    assert await asked(health, "/healthz", TIMEOUT) == 200
    pid = running.process.pid
    numbers = descriptors(running)
    used = numbers[-1] + 1
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, limits[1]))
    async with besieged(health, used - len(numbers) + 40, idle):
        begin = cpu_seconds(pid)
        await asyncio.sleep(3)
        spent = cpu_seconds(pid) - begin
        found = [await asked(health, "/healthz", TIMEOUT) for _ in range(3)]
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        again = await probed(running)
    complaints = [
        line for line in running.lines() if line["event"] == "http.not-accepting"
    ]

    assert spent < 1.5
    assert len(complaints) == 1
    assert complaints[0]["why"] == "too many open files"
    assert set(found) <= {200, "timed out"}
    assert again == [200] * PROBES


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def test_another_address_of_the_host_is_not_listened_on(tmp_path: Path) -> None:
    flags = ("--health-endpoint", "[127.0.0.2]:0")
    async with daemon(tmp_path, MACHINE, *flags) as running:
        address = await address_of(running, "health.listening")
        found = await asked(address, "/healthz", TIMEOUT)
        listening = addresses_of(running.process.pid)

    assert (address[0], found) == ("127.0.0.2", 200)
    assert listening == {address}


def addresses_of(pid: int) -> set[tuple[str, int]]:
    """Return the addresses and ports at which a process listens, by IPv4 or IPv6.

    Of its sockets, as another process may listen at the same port elsewhere.
    """
    sockets = {str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir()}
    found = set()
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        table = Path(f"/proc/{pid}/net/{name}")
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            fields = line.split()
            if fields[3] == LISTENS and f"socket:[{fields[9]}]" in sockets:
                host, port = fields[1].split(":")
                words = struct.unpack(f">{len(host) // 8}I", bytes.fromhex(host))
                address = struct.pack(f"={len(words)}I", *words)
                found.add((socket.inet_ntop(family, address), int(port, 16)))
    return found


async def test_metrics_are_not_at_the_port_of_the_probes(
    running: RunningDaemon,
) -> None:
    health = await address_of(running, "health.listening")

    assert await asked(health, "/metrics", TIMEOUT) == 404


async def test_a_busy_metrics_port_does_not_delay_the_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        flags = ("--http-endpoint", taken, "--health-endpoint", "127.0.0.1:0")
        async with daemon(tmp_path, MACHINE, *flags) as running:
            await running.line("http.not-listening")
            health = await address_of(running, "health.listening")
            found = await asked(health, "/readyz", TIMEOUT)

    assert found == 200


def test_a_bad_endpoint_is_rejected_by_the_name_of_its_flag() -> None:
    done = nri_resmgr("run", "--health-endpoint", "8892")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("nri-resmgr: --health-endpoint: '8892': expected ")
