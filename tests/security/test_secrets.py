"""What pods keep to themselves is nowhere to be found afterwards."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import attrs
import pytest

from nri_resmgr.control.client import Client
from nri_resmgr.recordings.text import load_recording
from nri_resmgr.stub import Container, LinuxCpu, LinuxMemory, LinuxPod, Pod
from nri_resmgr.stub.model import Hook, Hooks, LinuxContainer, LinuxResources
from nri_resmgr.testing import PluginRefused
from nri_resmgr.topology.synthetic import parse_spec
from tests.daemon.daemon_process import IDENTITY, RunningDaemon, daemon

pytestmark = pytest.mark.process

SECRET: Final = "hunter2"  # noqa: S105 - so that it can be looked for
MANIFEST: Final = {"spec": {"containers": [{"env": [{"value": SECRET}]}]}}
ANNOTATIONS: Final = {
    "kubectl.kubernetes.io/last-applied-configuration": json.dumps(MANIFEST),
    "resource-policy.nri.io/affinity": "no: [mapping",  # a mistake is quoted
}
STOP: Final = {"exec": {"command": ["logout", f"--password={SECRET}"]}}


def pod(name: str, **more: str) -> Pod:
    cgroup = f"/kubepods.slice/kubepods-pod{name}.slice"
    return Pod(
        id=f"pod-{name}",
        name=name,
        uid=f"uid-{name}",
        namespace="shop",
        annotations=ANNOTATIONS | more,
        linux=LinuxPod(cgroup_parent=cgroup),
    )


def container(name: str, cpus: int) -> Container:
    amounts = LinuxResources(
        cpu=LinuxCpu(cpus * 1024, cpus * 100_000, 100_000),
        memory=LinuxMemory(limit=1 << 30),
    )
    return Container(
        id=name,
        name=name,
        env=(f"PASSWORD={SECRET}",),
        args=("server", f"--token={SECRET}"),
        annotations={"io.kubernetes.container.preStopHandler": json.dumps(STOP)},
        hooks=Hooks(prestart=(Hook(path="/hook", args=(SECRET,), env=(SECRET,)),)),
        labels={"given": f"container-of-{name}"},
        linux=LinuxContainer(resources=amounts),
    )


@attrs.frozen(eq=False)
class Session:
    """A daemon with everything on, and what it says when it is asked."""

    daemon: RunningDaemon
    folder: Path
    answers: dict[str, str] = attrs.field(factory=dict)

    async def live(self) -> None:
        """Let pods come, change, be refused and go, across two sessions."""
        runtime = self.daemon.runtime
        for name, cpus in (("a", 1), ("b", 2)):
            await runtime.run_pod(pod(name))
            await runtime.create_container(f"pod-{name}", container(name, cpus))
            await runtime.start_container(name)
        strict = {"cpu.preserve.resource-policy.nri.io": "maybe"}
        for bad in (pod("large"), pod("strict", **strict)):
            await runtime.run_pod(bad)
            with pytest.raises(PluginRefused):
                await runtime.create_container(bad.id, container(bad.name, 64))
        await runtime.stop()
        await runtime.start()
        await runtime.synchronized(IDENTITY)
        await runtime.stop_container("b")

    async def ask(self) -> None:
        """Ask all that there is to ask."""
        line = await self.daemon.line("http.listening")
        port = line["endpoint"].rpartition(":")[2]
        _, metrics = await asyncio.to_thread(asked, port, "GET", "/metrics")
        self.answers["metrics"] = metrics
        control = Client(str(self.folder / "run" / "control.sock"))
        for what in ("state", "log", "host"):
            found = await asyncio.to_thread(control.get, f"/v1/{what}")
            self.answers[what] = json.dumps(found)
        for name in ("a", "b", "large", "strict"):
            found = await asyncio.to_thread(control.get, "/v1/explain", pod=name)
            self.answers[f"explain {name}"] = json.dumps(found)
        lines = await asyncio.to_thread(list, control.lines("/v1/events"))
        self.answers["events"] = json.dumps(lines)


def asked(port: str, method: str, path: str) -> tuple[int, str]:
    client = http.client.HTTPConnection("127.0.0.1", int(port), timeout=10)
    client.request(method, path)
    answer = client.getresponse()
    text = answer.read().decode()
    client.close()
    return answer.status, text


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    """Run it with a umask of 0, so that files are readable by all by default."""
    flags = {
        "state-dir": tmp_path / "state",
        "run-dir": tmp_path / "run",
        "control-socket": tmp_path / "run" / "control.sock",
        "http-endpoint": "127.0.0.1:0",
        "record": tmp_path / "recording",
        "log-debug": "*",
    }
    given = [f"--{name}={value}" for name, value in flags.items()]
    before = os.umask(0)
    try:
        async with daemon(
            tmp_path, parse_spec("2s4c2t"), *given, "--metrics-per-container"
        ) as found:
            one = Session(found, tmp_path)
            await one.live()
            await one.ask()
            yield one
    finally:
        os.umask(before)


def files_of_daemon(folder: Path) -> Iterator[Path]:
    """Yield what the daemon has made."""
    yield from (folder / "log", folder / "recording")
    for name in ("state", "run"):
        yield folder / name
        yield from (folder / name).rglob("*")


async def test_a_secret_of_a_pod_is_in_no_output(session: Session) -> None:
    await session.daemon.line("node.synchronized", 1)
    found = dict(session.answers)
    for path in files_of_daemon(session.folder):
        if path.is_file():
            found[str(path)] = path.read_bytes().decode(errors="replace")
    found["messages"] = messages(session.folder / "recording")

    assert [name for name, text in found.items() if SECRET in text] == []
    # What is looked for would be there, were it not kept out.
    assert {name for name, text in found.items() if "shop/a" in text} >= {
        str(session.folder / "log"),
        str(session.folder / "state" / "policy.checkpoint"),
        "events",
        "explain a",
    }
    assert "container-of-a" in found["messages"]


def messages(recording: Path) -> str:
    """Write the messages of a recording as text: in the file they are in base64."""
    lines = recording.read_text().splitlines(keepends=True)
    entries = load_recording(iter(lines), "rec").entries
    return "".join(str(getattr(one, "body", "")) for one in entries)


async def test_files_of_the_daemon_are_writable_by_its_user_only(
    session: Session,
) -> None:
    modes = {
        path: stat.S_IMODE(path.stat().st_mode)
        for path in files_of_daemon(session.folder)
    }

    assert [path for path, mode in modes.items() if mode & 0o022] == []
    private = ("log", "recording", "state", "state/policy.checkpoint")
    for name in (*private, "run/control.sock"):
        assert modes[session.folder / name] & 0o077 == 0, name


async def test_the_endpoint_only_reports(session: Session) -> None:
    line = await session.daemon.line("http.listening")
    port = line["endpoint"].rpartition(":")[2]
    for path in ("/metrics", "/healthz", "/readyz", "/v1/log", "/v1/reload"):
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            status, _ = await asyncio.to_thread(asked, port, method, path)
            assert status == (404 if path.startswith("/v1") else 405)
