"""The end of the agent: in order at any time, also while it still imports modules."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nri_resmgr.agent.api import Access
from tests.agent.agent_process import NODE, agent_process, kubeconfig_of
from tests.agent.fake_api_server import FakeApiServer
from tests.real_host.patience import patience

pytestmark = pytest.mark.process


def handles_sigterm(pid: int) -> bool:
    """Return whether a process has a handler, as the kernel knows it."""
    for line in Path("/proc", str(pid), "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "SigCgt":
            return bool(int(value, 16) & 1 << signal.SIGTERM - 1)
    return False


def has_imported_tls(pid: int) -> bool:
    """Return whether a process has loaded Python's TLS module."""
    return "/_ssl." in Path("/proc", str(pid), "maps").read_text()


async def ended_after(seconds: float, kubeconfig: Path, folder: Path) -> bool:
    """End an agent so long after it has a handler; return whether it had TLS then."""
    async with agent_process(folder, kubeconfig) as agent:
        pid = agent.process.pid
        async with asyncio.timeout(patience(30)):
            while not handles_sigterm(pid):  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.001)
        await asyncio.sleep(seconds)
        has_tls = has_imported_tls(pid)
        agent.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(patience(30)):
            assert await agent.process.wait() == 0
    return has_tls


async def test_an_end_during_the_imports_is_in_order(
    access: Access, tmp_path: Path
) -> None:
    kubeconfig = kubeconfig_of(access, tmp_path)
    # On a busy machine this process may look too late.
    for _ in range(10):
        if not await ended_after(0.0, kubeconfig, tmp_path):
            return
    pytest.fail("the signal is handled only when all is imported")


@pytest.mark.parametrize("later", [0.1, 0.3, 1.0])
async def test_an_end_while_it_starts_is_in_order(
    later: float, access: Access, tmp_path: Path
) -> None:
    await ended_after(later, kubeconfig_of(access, tmp_path), tmp_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_an_end_while_it_runs_is_in_order(
    number: signal.Signals, server: FakeApiServer, access: Access, tmp_path: Path
) -> None:
    server.put("/api/v1/nodes", {"metadata": {"name": NODE}})
    async with agent_process(tmp_path, kubeconfig_of(access, tmp_path)) as agent:
        await agent.line("agent.started")
        agent.process.send_signal(number)
        await agent.line("agent.ended")
        async with asyncio.timeout(patience(30)):
            status = await agent.process.wait()

    assert status == 0


@pytest.fixture
def system(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as system:
        system.bind(str(tmp_path / "notify"))
        system.settimeout(patience(60))
        yield system


async def test_systemd_learns_of_the_start_of_life_and_of_the_end(
    system: socket.socket, server: FakeApiServer, access: Access, tmp_path: Path
) -> None:
    await server.__aexit__()  # it starts without an API server
    given = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "200000"}
    kubeconfig = kubeconfig_of(access, tmp_path)
    async with agent_process(tmp_path, kubeconfig, environment=given) as agent:
        first = [await asyncio.to_thread(system.recv, 200) for _ in range(3)]
        agent.process.send_signal(signal.SIGTERM)
        await agent.process.wait()
    await server.__aenter__()
    last, rest = b"", [first[-1]]
    system.setblocking(False)
    while rest:
        last = rest.pop()
        try:
            rest.append(system.recv(200))
        except BlockingIOError:
            break

    assert first[0].startswith(b"READY=1\nSTATUS=connects node node-a ")
    assert (first[1:], last) == ([b"WATCHDOG=1"] * 2, b"STOPPING=1")


def test_other_commands_keep_the_default(tmp_path: Path) -> None:
    """A handler of the daemon would wait for a file of the host that hangs."""
    reading, writing = os.pipe()
    code = (
        "import signal, sys\n"
        "from nri_resmgr.__main__ import main\n"
        f"main(['check', {str(tmp_path / 'none.yaml')!r}])\n"
        f"import os; os.write({writing}, repr(signal.getsignal(15)).encode())\n"
    )
    subprocess.run([sys.executable, "-c", code], pass_fds=[writing], check=True)
    os.close(writing)
    found = os.read(reading, 100)
    os.close(reading)

    assert found == b"<Handlers.SIG_DFL: 0>"
