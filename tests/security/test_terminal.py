"""Hostile names and annotations of pods, and every output of the real processes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.app.annotations import reading
from nri_resmgr.app.annotations.keys import AFFINITY_KEYS, KEYS, READ_ELSEWHERE
from nri_resmgr.app.annotations.reading import CRI_O, KUBERNETES, NATIVE
from nri_resmgr.classes.memory.misc import EPC_KEY
from nri_resmgr.classes.memory.numa import CLASS_KEY, POLICY_KEY
from nri_resmgr.classes.memory.qos import QOS_SUFFIX
from nri_resmgr.stub import Container, LinuxCpu, LinuxMemory, LinuxPod, Pod
from nri_resmgr.stub.model import LinuxContainer, LinuxResources
from nri_resmgr.testing import PluginRefused
from nri_resmgr.topology.synthetic import parse_spec
from tests.cli.command import ROOT, nri_resmgr
from tests.cli.terminal import on_a_terminal
from tests.daemon.daemon_process import IDENTITY, RunningDaemon, daemon
from tests.security.hostile import FORGED, VALID, forged_in, found_in
from tests.security.test_secrets import asked

pytestmark = pytest.mark.process

HOSTILE: Final = f"{VALID}\n{FORGED} \x1b[2Jweb"

KNOWN: Final = (
    # Those of CRI-O are whole keys.
    *(stem if CRI_O in stem else f"{stem}.{NATIVE}" for stem in KEYS),
    *(f"{stem}.{reading.CRI_RM}" for stem in KEYS if CRI_O not in stem),
    *(f"{stem}.{KUBERNETES}" for stem in ("rdtclass", "blockioclass")),
    *(
        domain + suffix
        for suffix in AFFINITY_KEYS
        for domain in (NATIVE, reading.CRI_RM)
    ),
    *READ_ELSEWHERE,
    *(f"class{QOS_SUFFIX}", f"memory.high{QOS_SUFFIX}"),
    *(CLASS_KEY, POLICY_KEY, EPC_KEY, "noderesource.dev/resources"),
)
"""Annotation keys that are read."""


def keys() -> Iterator[dict[str, str]]:
    """Yield annotations: each key with a hostile value, and with a hostile scope."""
    for key in KNOWN:
        yield {key: HOSTILE}
        yield {f"{key}/container.{HOSTILE}": "true", f"{key}/{HOSTILE}": HOSTILE}
    yield {f"{HOSTILE}.{NATIVE}/pod": HOSTILE, HOSTILE: HOSTILE}


def pod(number: int, annotations: dict[str, str]) -> Pod:
    return Pod(
        id=f"pod-{number}",
        name=f"{number}{HOSTILE}",
        uid=f"uid-{number}{HOSTILE}",
        namespace=f"shop{HOSTILE}",
        annotations=annotations,
        labels={f"label{HOSTILE}": HOSTILE, "app": HOSTILE},
        linux=LinuxPod(cgroup_parent=f"/kubepods.slice/kubepods-pod{number}.slice"),
    )


def container(number: int, cpus: float) -> Container:
    amounts = LinuxResources(
        cpu=LinuxCpu(int(cpus * 1024), int(cpus * 100_000), 100_000),
        memory=LinuxMemory(limit=1 << 20),
    )
    return Container(
        id=f"c{number}",
        name=f"main{HOSTILE}",
        labels={"l": HOSTILE},
        linux=LinuxContainer(resources=amounts),
    )


async def live(running: RunningDaemon) -> list[str]:
    """Run pods with all annotations; return what the runtime gets as errors."""
    runtime, errors = running.runtime, []
    for number, read in enumerate(keys()):
        await runtime.run_pod(pod(number, read))
        # One has CPUs of its own, and one too many.
        cpus = {0: 1, 1: 64}.get(number, 0.01)
        try:
            await runtime.create_container(f"pod-{number}", container(number, cpus))
            await runtime.start_container(f"c{number}")
        except PluginRefused as refused:
            errors.append(refused.message)
    await runtime.stop()
    await runtime.start()
    await runtime.synchronized(IDENTITY)
    return errors


@pytest.fixture
async def outputs(tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """Run a daemon with everything on; yield all that can be read of it."""
    control = tmp_path / "run" / "control.sock"
    flags = {
        "state-dir": tmp_path / "state",
        "run-dir": tmp_path / "run",
        "control-socket": control,
        "http-endpoint": "127.0.0.1:0",
        "record": tmp_path / "recording",
        "log-debug": "*",
    }
    words = [f"--{name}={value}" for name, value in flags.items()]
    async with daemon(
        tmp_path, parse_spec("1s2n4c1t"), *words, "--metrics-per-container"
    ) as running:
        found = {"errors of the runtime": "\n".join(await live(running))}
        port = (await running.line("http.listening"))["endpoint"].rpartition(":")[2]
        _, found["metrics"] = await asyncio.to_thread(asked, port, "GET", "/metrics")
        for path in ("state", "explain?pod=0", "events", "no%1b%e2%80%aepath"):
            found[path] = await asyncio.to_thread(curl, control, path)
        found |= await asyncio.to_thread(asked_by_command, control)
        found |= await asyncio.to_thread(shown_of_recording, tmp_path / "recording")
        found["log"] = running.log.read_text()
        yield found


def curl(control: Path, path: str) -> str:
    """Return an answer as a client without our code gets it."""
    code = (
        "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
        "s.sendall(f'GET /v1/{sys.argv[2]} HTTP/1.0\\r\\n\\r\\n'.encode());"
        "sys.stdout.buffer.write(s.makefile('rb').read())"
    )
    done = subprocess.run(
        (sys.executable, "-c", code, control, path), capture_output=True, check=True
    )
    return done.stdout.decode().replace("\r\n", "\n")


def asked_by_command(control: Path) -> dict[str, str]:
    """Return what each command that queries the daemon prints."""
    queries = (
        *(("status",), ("explain", "0"), ("explain", "1"), ("events",)),
        *(("top", "--once"), ("log",), ("reload",), ("rebalance", "--dry-run")),
        *(("explain", HOSTILE.replace("\0", "")), ("log", f"x{HOSTILE[1:]}")),
    )
    found: dict[str, str] = {}
    for query in queries:
        forms = ("table", "json", "yaml") if query != ("reload",) else ("",)
        for form in forms:
            words = (
                *query,
                f"--control-socket={control}",
                *(("-o", form) * bool(form)),
            )
            done = nri_resmgr(*words)
            assert "Traceback" not in done.stderr
            found[f"{query[0]} {len(found)} {form}"] = done.stdout + done.stderr
    found["top on a terminal"] = drawn_on_a_terminal(
        "top", f"--control-socket={control}"
    )
    return found


def drawn_on_a_terminal(*words: str) -> str:
    """Return what a command draws on a terminal, without our own sequences."""
    size = {"columns": 200, "lines": 100}  # room for many containers
    with on_a_terminal(*words, **size, environment={"NO_COLOR": "1"}) as terminal:
        terminal.until(lambda screen: screen[-1].startswith("q quit"))
        terminal.press("q")
        text = terminal.rest()
    ours = ("\x1b[?1049h", "\x1b[?25l", "\x1b[?25h", "\x1b[?1049l", "\x1b[H", "\x1b[K")
    shown = text.replace("\r\n", "\n")
    for sequence in (*ours, "\x1b[J"):
        shown = shown.replace(sequence, "")
    return shown


def shown_of_recording(path: Path) -> dict[str, str]:
    found = {}
    for words in (
        *(("--show",), ("--show", "-o", "json"), ("--show", "-o", "yaml")),
        *((), ("-o", "json"), ("-o", "yaml")),
    ):
        done = nri_resmgr("replay", path, *words)
        assert "Traceback" not in done.stderr
        found[f"replay {words}"] = done.stdout + done.stderr
    return found


async def test_no_output_has_a_character_of_a_pod_raw(outputs: dict[str, str]) -> None:
    raw = {name: found_in(text) for name, text in outputs.items()}
    assert {name: found for name, found in raw.items() if found} == {}
    assert [name for name, text in outputs.items() if forged_in(text)] == []
    # What is looked for would be there, were it not escaped.
    shown = {name.split()[0] for name, text in outputs.items() if "forged" in text}
    assert shown >= {
        *("errors", "metrics", "state", "explain?pod=0", "events", "log"),
        *("status", "explain", "replay"),
    }
    assert r"shop\x00\x01" in outputs["top on a terminal"]


async def test_the_log_as_text(tmp_path: Path) -> None:
    words = ("--log-format=text", "--log-debug=*", "--state-dir=")
    async with daemon(tmp_path, parse_spec("1s2n4c1t"), *words) as running:
        errors = await live(running)
        text = running.log.read_text()

    assert len(errors) > 5
    assert found_in(text + "\n".join(errors)) == set()
    assert forged_in(text) == []
    assert text.count("forged") > 100


# Without a daemon.

STORY: Final = {
    "machine": "1s1n4c1t",
    "story": [{"create": HOSTILE, "requests": HOSTILE}],
}
MANIFEST: Final = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": HOSTILE, "annotations": {KNOWN[0]: HOSTILE}},
    "spec": {
        "containers": [
            {"name": HOSTILE, "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
            {"name": "large", "resources": {"requests": {"cpu": "64"}}},
        ]
    },
}
BALLOONS: Final = {
    "apiVersion": "config.nri/v1alpha1",
    "kind": "BalloonsPolicy",
    "spec": {
        "reservedResources": {"cpu": 1},
        "balloonTypes": [{"name": HOSTILE, "namespaces": ["*"]}],
    },
}
COMMANDS: Final = (
    *(("simulate", document) for document in (STORY, MANIFEST, BALLOONS, HOSTILE)),
    *(("check", document) for document in (BALLOONS, HOSTILE, {HOSTILE: HOSTILE})),
    *(("replay", document) for document in (MANIFEST, HOSTILE)),
)


@pytest.mark.parametrize(("command", "document"), COMMANDS)
@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_files_of_others(
    command: str, document: object, form: str, tmp_path: Path
) -> None:
    # The name of the file is as hostile as its text.
    path = tmp_path / f"a{HOSTILE[1:]}".replace("/", "").replace("\0", "")[:60]
    path.write_text(json.dumps(document))
    machine = () if command == "replay" else ("--topology", "1s1n4c1t")

    done = nri_resmgr(command, path, "-o", form, *machine)

    shown = done.stdout + done.stderr
    assert "Traceback" not in shown
    assert found_in(shown) == set()
    assert forged_in(shown) == []
    # \\e is an escape in YAML.
    assert any(escape in shown for escape in ("x1b", "\\u001b", "\\e"))


CRI_RM: Final = {
    "policy": {"Active": "balloons", "balloons": {"Ballons": HOSTILE}},
    HOSTILE: HOSTILE,
}
CONFIG_MAP: Final = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": HOSTILE},
    "data": {HOSTILE: HOSTILE, "policy": json.dumps(CRI_RM["policy"])},
}
CMK: Final = {"pools": {HOSTILE: {"exclusive": True, "cpuLists": [], HOSTILE: 1}}}


@pytest.mark.parametrize(
    "document", [CRI_RM, CONFIG_MAP, CMK, MANIFEST, BALLOONS, HOSTILE], ids=range(6)
)
def test_converted_files_of_others(document: object, tmp_path: Path) -> None:
    path = tmp_path / f"a{HOSTILE[1:]}".replace("/", "").replace("\0", "")[:60]
    path.write_text(json.dumps(document))

    done = nri_resmgr("convert", path)

    shown = done.stdout + done.stderr
    assert "Traceback" not in shown
    assert found_in(shown) == set()
    assert forged_in(shown) == []
    assert "x1b" in shown


def test_mistakes_on_the_command_line() -> None:
    for words in (
        (HOSTILE[1:],),
        ("status", HOSTILE[1:]),
        ("topology", "--machine", HOSTILE[1:]),
        ("run", "--nri-socket", f"/{HOSTILE[1:]}", "--state-dir="),
        ("install", HOSTILE[1:]),
    ):
        done = nri_resmgr(*words)

        assert done.returncode
        assert done.stderr
        assert found_in(done.stderr) == set()
        assert forged_in(done.stderr) == []


def test_a_traceback_of_a_command() -> None:
    code = (
        "import nri_resmgr.cli.main as main, nri_resmgr.__main__ as program\n"
        "def fail(_): raise LookupError(chr(0x1b) + chr(0x202e) + chr(0x9b))\n"
        "main.main = fail\n"
        "program.main()\n"
    )
    done = subprocess.run(
        (sys.executable, "-c", code),
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )

    assert done.returncode == 1
    assert r"LookupError: \x1b\u202e\x9b" in done.stderr.decode()
