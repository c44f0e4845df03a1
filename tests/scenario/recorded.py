"""Nodes of the test runtime whose plugin is recorded, and what happens on them."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import msgspec

from nri_proto import NriLevel
from nri_resmgr.app.configuration.status import Document, DocumentSource
from nri_resmgr.app.plugin.options import DEFAULT_OPTIONS, PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.app.plugin.status_codes import status_of
from nri_resmgr.policies import parse_config
from nri_resmgr.recordings.entries import Header, Recording
from nri_resmgr.recordings.file import RecordingFile
from nri_resmgr.recordings.recorder import Recorder
from nri_resmgr.recordings.text import load_recording
from nri_resmgr.scenario.differences import AS_RECORDED, Outcome, Replacements
from nri_resmgr.scenario.kubelet import container_of, pod_of, resources_of
from nri_resmgr.scenario.replay import Replay
from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.stub import Stub, StubOptions
from nri_resmgr.stub.identity import Identity
from nri_resmgr.stub.transport import SocketPath
from nri_resmgr.testing import PluginRefused, Runtime
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, MilliCpus, QosClass

NAME = "90-resource-policy"
MACHINE = "2s2n2c2t pmem=1x64Gi"
SAFE = NriLevel(0, 12, 1)
CONTAINERD = (SAFE, "containerd")

GIB = 1 << 30


def document(spec: str = "{}", kind: str = "TopologyAwarePolicy") -> str:
    return f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {spec}\n"


@attrs.frozen(eq=False)
class RecordedNode:
    """A runtime with the plugin in this process, which is recorded."""

    runtime: Runtime
    plugin: ResourcePolicy
    file: Path

    def configure(self, text: str) -> None:
        """Put another document in force."""
        self.plugin.configuration.offer(Document(text, DocumentSource.FILE))


@asynccontextmanager
async def recorded_node(
    folder: Path,
    text: str = document(),
    *,
    release: tuple[NriLevel, str] = CONTAINERD,
    plugin_options: PluginOptions = DEFAULT_OPTIONS,
    limit: int = 1 << 30,
) -> AsyncIterator[RecordedNode]:
    """Run it, and end the recording with it."""
    machine, file = parse_spec(MACHINE), folder / "recording"
    header = Header("1", time.time_ns(), machine, dry_run=plugin_options.dry_run)
    recorder = Recorder(RecordingFile(str(file), limit), header)
    plugin = ResourcePolicy(
        machine,
        parse_config(text),
        plugin_options=msgspec.structs.replace(
            plugin_options, document=Document(text, DocumentSource.FILE)
        ),
        observers=(recorder,),
    )
    recorder.begin(plugin)
    async with Runtime(folder, *release) as runtime:
        options = StubOptions(status_of=status_of, on_message=recorder.tap)
        endpoint = SocketPath(str(runtime.socket_path))
        stub = Stub(plugin, Identity.parse(NAME), endpoint, options)
        plugin.use_update_sender(stub.updates)
        running = asyncio.create_task(stub.run())
        writing = asyncio.create_task(recorder.run())
        try:
            await runtime.synchronized(NAME)
            yield RecordedNode(runtime, plugin, file)
        finally:
            stub.stop()
            await running
            writing.cancel()
            await asyncio.wait({writing})
            recorder.close()


def load(file: Path) -> Recording:
    return load_recording(iter(file.read_text().splitlines(keepends=True)), "rec")


async def replayed(file: Path, instead: Replacements = AS_RECORDED) -> Outcome:
    recording = load(file)
    return await Replay(recording.header, recording.entries, instead).run()


def row(rng: random.Random) -> ContainerRow:
    """Draw what a container asks for."""
    qos = rng.choice(list(QosClass))
    cpus = {
        QosClass.GUARANTEED: rng.choice([500, 1000, 2000, 3000, 9000]),
        QosClass.BURSTABLE: rng.choice([100, 1500]),
        QosClass.BEST_EFFORT: 0,
    }[qos]
    memory = None if qos is QosClass.BEST_EFFORT else Bytes(rng.randint(1, 4) * GIB)
    return ContainerRow(qos=qos, request=MilliCpus(cpus), memory=memory)


async def churn(runtime: Runtime, seed: int, steps: int) -> None:
    """Have pods come, change and go; some of them are refused."""
    rng, living = random.Random(seed), list[str]()  # noqa: S311 - a repeatable draw
    capacity = Bytes(sum(node.memory for node in parse_spec(MACHINE).nodes))
    for number in range(steps):
        what = rng.choice(["create", "create", "create", "update", "stop", "restart"])
        with contextlib.suppress(PluginRefused):
            if what == "create":
                name, asks = f"{seed}-{number}", row(rng)
                await runtime.run_pod(pod_of(name, asks))
                made = container_of(f"c{name}", asks, capacity)
                made = msgspec.structs.replace(
                    made, env=("SECRET=hidden",), args=("--hidden",)
                )
                await runtime.create_container(name, made)
                living.append(name)
                await runtime.start_container(made.id)
            elif what == "update" and living:
                name = rng.choice(living)
                await runtime.update_container(f"c{name}", resources_of(row(rng)))
            elif what == "stop" and living:
                name = living.pop(rng.randrange(len(living)))
                await runtime.stop_pod(name)
                await runtime.remove_pod(name)
            elif what == "restart" and rng.random() < 0.3:
                await runtime.stop()
                await runtime.start()
                await runtime.synchronized(NAME)
