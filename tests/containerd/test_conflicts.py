"""Two plugins that adjust the same: the test runtime resolves it as containerd does.

Each pair of adjustments is made to a container of a real containerd and, from the same
container, on the test runtime of its NRI level. A plugin in front of the two and one
behind them see what they have done to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import attrs
import pytest

from nri_proto import NriLevel
from nri_resmgr.stub import (
    Container,
    ContainerAdjustment,
    Device,
    Hook,
    Hooks,
    LinuxContainer,
    Mount,
    Pod,
    Rlimit,
    Stub,
)
from nri_resmgr.stub.identity import Identity
from nri_resmgr.stub.transport import SocketPath
from nri_resmgr.testing import FieldConflict, Runtime, running_plugin
from tests.real_host.containerd import Containerd
from tests.real_host.cri import CallFailed
from tests.real_host.patience import patience
from tests.real_host.pods import ContainerSpec, PodSpec
from tests.real_host.resources import Resources

pytestmark = pytest.mark.containerd

NEW: Final = ContainerAdjustment()


def mount(source: str) -> Mount:
    return Mount("/m", "bind", source, ("rbind", "ro"))


def device(minor: int) -> Device:
    return Device("/dev/d", "c", 1, minor)


def hooks(path: str) -> Hooks:
    return Hooks(prestart=(Hook(path, (path,)),))


# By names of tests: the adjustments of the plugin that is first, and of the second.
PAIRS: Final[Mapping[str, tuple[ContainerAdjustment, ContainerAdjustment]]] = {
    "env set twice": (NEW.set_env("A", "1"), NEW.set_env("A", "2")),
    "env set twice to the same": (NEW.set_env("A", "1"), NEW.set_env("A", "1")),
    "env replaced": (NEW.set_env("A", "1"), NEW.replace_env("A", "2")),
    "env removed": (NEW.set_env({"A": "1", "B": "1"}), NEW.remove_env("A")),
    "env of two": (NEW.set_env("A", "1"), NEW.set_env("B", "2")),
    "env of the image": (NEW.remove_env("PATH"), NEW.set_env("PATH", "/")),
    "annotation set twice": (
        NEW.set_annotation("k", "1"),
        NEW.set_annotation("k", "2"),
    ),
    "annotation replaced": (
        NEW.set_annotation("k", "1"),
        NEW.replace_annotation("k", "2"),
    ),
    "annotation removed": (NEW.set_annotation("k", "1"), NEW.remove_annotation("k")),
    "mount set twice": (NEW.set_mount(mount("/1")), NEW.set_mount(mount("/2"))),
    "mount replaced": (NEW.set_mount(mount("/1")), NEW.replace_mount(mount("/2"))),
    "mount removed": (NEW.set_mount(mount("/1")), NEW.remove_mount("/m")),
    "device set twice": (NEW.set_device(device(1)), NEW.set_device(device(2))),
    "device replaced": (NEW.set_device(device(1)), NEW.replace_device(device(2))),
    "device removed": (NEW.set_device(device(1)), NEW.remove_device("/dev/d")),
    "CPUs set twice": (NEW.set_cpus("0"), NEW.set_cpus("1")),
    "memory nodes set twice": (NEW.set_mems("0"), NEW.set_mems("0")),
    "quota set twice": (NEW.set_cpu_quota(1000), NEW.set_cpu_quota(2000)),
    "period set twice": (NEW.set_cpu_period(1000), NEW.set_cpu_period(2000)),
    "real-time runtime set twice": (
        NEW.set_cpu_realtime_runtime(1000),
        NEW.set_cpu_realtime_runtime(2000),
    ),
    "real-time period set twice": (
        NEW.set_cpu_realtime_period(1000),
        NEW.set_cpu_realtime_period(2000),
    ),
    "CPUs and memory nodes": (NEW.set_cpus("0"), NEW.set_mems("0")),
    "shares set twice": (NEW.set_cpu_shares(100), NEW.set_cpu_shares(100)),
    "memory limit set twice": (
        NEW.set_memory_limit(64 << 20),
        NEW.set_memory_limit(65 << 20),
    ),
    "memory limit and swap": (
        NEW.set_memory_limit(64 << 20),
        NEW.set_memory_swap(64 << 20),
    ),
    "reservation set twice": (
        NEW.set_memory_reservation(64 << 20),
        NEW.set_memory_reservation(65 << 20),
    ),
    "swap set twice": (NEW.set_memory_swap(1 << 30), NEW.set_memory_swap(2 << 30)),
    "kernel memory set twice": (
        NEW.set_memory_kernel(1 << 30),
        NEW.set_memory_kernel(2 << 30),
    ),
    "TCP memory set twice": (
        NEW.set_memory_kernel_tcp(1 << 30),
        NEW.set_memory_kernel_tcp(2 << 30),
    ),
    "swappiness set twice": (
        NEW.set_memory_swappiness(1),
        NEW.set_memory_swappiness(2),
    ),
    "OOM killer set twice": (
        NEW.set_memory_disable_oom_killer(),
        NEW.set_memory_disable_oom_killer(),
    ),
    "hierarchy set twice": (
        NEW.set_memory_use_hierarchy(),
        NEW.set_memory_use_hierarchy(),
    ),
    "huge pages set twice": (
        NEW.set_hugepage_limit("2MB", 0),
        NEW.set_hugepage_limit("2MB", 2 << 20),
    ),
    "huge pages of two sizes": (
        NEW.set_hugepage_limit("2MB", 0),
        NEW.set_hugepage_limit("1GB", 0),
    ),
    "block I/O class set twice": (
        NEW.set_blockio_class("a"),
        NEW.set_blockio_class("b"),
    ),
    "RDT class set twice": (NEW.set_rdt_class("a"), NEW.set_rdt_class("b")),
    "CDI device set twice": (
        NEW.add_cdi_device("example.com/gpu=0"),
        NEW.add_cdi_device("example.com/gpu=0"),
    ),
    "unified set twice": (
        NEW.set_unified("memory.low", "1"),
        NEW.set_unified("memory.low", "2"),
    ),
    "rlimit set twice": (
        NEW.set_rlimit(Rlimit("RLIMIT_CORE", hard=1, soft=1)),
        NEW.set_rlimit(Rlimit("RLIMIT_CORE", hard=2, soft=2)),
    ),
    "hooks of two": (NEW.add_hooks(hooks("/1")), NEW.add_hooks(hooks("/2"))),
    "cgroup set twice": (NEW.set_cgroups_path("/a"), NEW.set_cgroups_path("/b")),
    "pids set twice": (NEW.set_pids_limit(10), NEW.set_pids_limit(20)),
    "OOM score set twice": (NEW.set_oom_score_adj(10), NEW.set_oom_score_adj(20)),
    "args set twice": (NEW.set_args(["/bin/a"]), NEW.set_args(["/bin/b"])),
    "args replaced": (NEW.set_args(["/bin/a"]), NEW.replace_args(["/bin/b"])),
}


class Adjusting:
    """Adjusts every container in the same way."""

    def __init__(self, adjustment: ContainerAdjustment) -> None:
        self._adjustment = adjustment

    def create_container(self, _pod: Pod, _container: Container) -> ContainerAdjustment:
        return self._adjustment


class Watching:
    """Adjusts nothing, and keeps the last container that it has seen."""

    def __init__(self) -> None:
        self.seen: tuple[Pod, Container] | None = None

    def create_container(self, pod: Pod, container: Container) -> None:
        self.seen = pod, container


@attrs.frozen
class Chain:
    """The plugins, by their indices."""

    before: Watching
    after: Watching
    plugins: Mapping[str, object]

    @classmethod
    def of(cls, pair: tuple[ContainerAdjustment, ContainerAdjustment]) -> Chain:
        """Return new plugins around those that make two adjustments."""
        before, after = Watching(), Watching()
        first, second = map(Adjusting, pair)
        plugins = (before, first, second, after)
        names = ("00-before", "10-first", "20-second", "99-after")
        return cls(before, after, dict(zip(names, plugins, strict=True)))

    def outcome(self, error: str) -> str | tuple[object, ...]:
        """Return the error, or what plugins see of the container behind the two."""
        if error:
            return error
        assert self.after.seen is not None
        _, container = self.after.seen
        linux = container.linux or LinuxContainer()
        return (
            *(container.env, container.args, container.annotations, container.mounts),
            *(container.hooks, container.rlimits, linux.devices, linux.resources),
            *(linux.cgroups_path, linux.oom_score_adj),
        )


@asynccontextmanager
async def connected(socket: Path, plugins: Mapping[str, object]) -> AsyncIterator[Stub]:
    """Run plugins at the socket of a real runtime; yield the stub of the last one."""
    async with AsyncExitStack() as stack:
        for name, plugin in plugins.items():
            ready = asyncio.Event()
            plugin.synchronize = lambda *_, ready=ready: ready.set()  # type: ignore[attr-defined]
            stub = Stub(plugin, Identity.parse(name), SocketPath(str(socket)))
            running = asyncio.create_task(stub.run())
            stack.push_async_callback(_ended, stub, running)
            async with asyncio.timeout(patience(10)):
                await ready.wait()
        yield stub


async def _ended(stub: Stub, running: asyncio.Task[None]) -> None:
    stub.stop()
    await running


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
async def test_the_test_runtime_predicts_what_comes_of_two_plugins(
    containerd: Containerd,
    tmp_path: Path,
    pair: tuple[ContainerAdjustment, ContainerAdjustment],
) -> None:
    real, error = Chain.of(pair), ""
    async with connected(containerd.layout.nri_socket, real.plugins) as stub:
        pod = await asyncio.to_thread(containerd.run_pod, PodSpec("web"))
        spec = ContainerSpec("app", Resources.guaranteed(0.1))
        try:
            await asyncio.to_thread(pod.create, spec)
        except CallFailed as failed:
            # The whole error, if it is another one than of a conflict.
            error = str(failed).rpartition("adjustment for container: ")[2]
        of = stub.runtime
    assert real.before.seen is not None

    predicted = Chain.of(pair)
    refusal = await predict(tmp_path, predicted, *real.before.seen, of.level)

    assert predicted.outcome(refusal) == real.outcome(error)


async def predict(
    folder: Path, chain: Chain, pod: Pod, container: Container, level: NriLevel | None
) -> str:
    """Create the same container on the test runtime; return why it is refused."""
    assert level is not None
    async with Runtime(folder, level) as runtime, AsyncExitStack() as stack:
        for name, plugin in chain.plugins.items():
            await stack.enter_async_context(running_plugin(runtime, plugin, name))
        await runtime.run_pod(pod)
        try:
            await runtime.create_container(pod.id, container)
        except FieldConflict as conflict:
            return str(conflict)
        return ""
