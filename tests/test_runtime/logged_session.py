"""A session that the shipped logger records, and what a plugin saw of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nri_proto import NriLevel
from nri_resmgr.stub import HANDLER_NAMES, Container, LinuxCpu, LinuxResources, Pod
from nri_resmgr.testing import Runtime, running_plugin
from tests.plugins.programs import PLUGINS, running


class Witness:
    """A plugin that notes the names and arguments of all calls of handlers."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []
        for name in HANDLER_NAMES:
            if name not in ("configure", "shutdown"):
                setattr(self, name, self._noting(name))

    def _noting(self, name: str) -> Any:
        return lambda *arguments: self.seen.append((name, *arguments))


async def record(
    folder: Path, file: Path, level: NriLevel, runtime_name: str = "containerd"
) -> Witness:
    """Have the logger record a session; return a plugin that saw the same."""
    witness = Witness()
    async with Runtime(folder, level, runtime_name) as runtime:
        early = await runtime.run_pod(Pod(name="early", labels={"a": "b"}))
        for name in ("kept", "gone"):
            await runtime.create_container(
                early.id, Container(id=name, name=name, env=("SECRET=1",))
            )
            await runtime.start_container(name)
        flags = ("--socket", str(runtime.socket_path), "--format", "json")
        where = ("--log-file", str(file))
        async with (
            running(PLUGINS / "logger", *flags, *where),
            running_plugin(runtime, witness, "98-witness"),
        ):
            await runtime.synchronized("99-logger")
            await _live(runtime)
    return witness


async def _live(runtime: Runtime) -> None:
    await runtime.stop_container("gone")
    await runtime.remove_container("gone")
    pod = await runtime.run_pod(Pod(name="web", annotations={"é": '"\n'}))
    created = await runtime.create_container(pod.id, Container(name="app"))
    await runtime.start_container(created.container.id)
    resources = LinuxResources(cpu=LinuxCpu(shares=2**40))
    await runtime.update_container(created.container.id, resources)
    await runtime.stop_pod(pod.id)
    await runtime.remove_pod(pod.id)
