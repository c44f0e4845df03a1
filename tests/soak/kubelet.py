"""A kubelet with both of its sockets, whose pods are as large as the runtime's."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias
from zlib import crc32

from nri_proto import nri_pb2 as pb
from nri_resmgr.kubelet._gen import core_pb2 as core
from nri_resmgr.kubelet.sockets import POD_RESOURCES, PODS_API
from nri_resmgr.testing.kubelet.pod_resources import (
    FakeDevice,
    FakePod,
    FakePodResources,
)
from nri_resmgr.testing.kubelet.pods import PodsService, container, pod
from nri_resmgr.testing.kubelet.server import KubeletServer
from tests.benchmarks.workload import amounts_of
from tests.soak.daemon import Daemon

_PATIENCE: Final = 120.0  # seconds; the machine may be busy with other tests

# Of each pod beside its own container: kept, and read again by each daemon.
_KEPT: Final = (8, 8)  # containers, and resources of each

# Of pods that wait for their containers: of each 1.2 MB are read, and none are kept.
_WAITING: Final = 20
_TOO_MANY: Final = (500, 30)

Pods: TypeAlias = Sequence[tuple[pb.PodSandbox, pb.Container]]


class LargePods(PodsService):
    """Pods with what real ones have in fields that are not read.

    Attributes:
        others: These fields, encoded, by the UID of the pod.
    """

    def __init__(self) -> None:
        super().__init__()
        self.others: dict[str, bytes] = {}

    def encoded(self, one: core.Pod) -> bytes:
        """See `PodsService.encoded`."""
        # Parts of a message that follow each other are one message.
        return super().encoded(one) + self.others[one.metadata.uid]


@contextmanager
def kubelet_of(folder: Path, pods: Pods) -> Iterator[Path]:
    """Serve these pods at sockets below *folder*, which is the kubelet's."""
    ready, end, loop = threading.Event(), asyncio.Event(), asyncio.new_event_loop()

    async def serve() -> None:
        service, devices = services_of(pods)
        async with (
            KubeletServer(folder / PODS_API.socket, service),
            KubeletServer(folder / POD_RESOURCES.socket, devices),
        ):
            ready.set()
            await end.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(_PATIENCE)
        yield folder
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join()
        loop.close()


def services_of(pods: Pods) -> tuple[PodsService, FakePodResources]:
    """Make both services of a kubelet of the pods of `tests.benchmarks.workload`."""
    service, devices = LargePods(), FakePodResources()
    for number, (sandbox, made) in enumerate(pods):
        service.others[sandbox.uid] = _unread(
            sandbox.SerializeToString() + made.SerializeToString()
        )
        asked = amounts_of(number)
        one = container(
            made.name,
            _amounts(asked.cpu, asked.memory),
            _amounts(asked.cpu_limit, asked.memory_limit),
        )
        name, namespace = sandbox.name, sandbox.namespace
        more = _many(sandbox.uid, *_KEPT)
        service.put(pod(sandbox.uid, one, *more, name=name, namespace=namespace))
        found = FakeDevice("vendor.com/gpu", (f"gpu-{sandbox.uid}",), (0,))
        devices.put(FakePod(namespace, name, devices={made.name: (found,)}))
    for uid in map("waiting-{}".format, range(_WAITING)):
        service.others[uid] = b""
        service.put(pod(uid, *_many(uid, *_TOO_MANY)))
    return service, devices


def await_kubelet(daemon: Daemon) -> None:
    """Wait until the daemon knows the pods of both services."""
    until = time.monotonic() + _PATIENCE
    while True:
        state = daemon.control.get("/v1/state")
        why = [one["problem"] for one in state["kubeletServices"]]
        sources = {one["source"] for one in state["containers"]}
        if not any(why) and sources == {"kubelet"}:
            return
        assert time.monotonic() < until, (why, sources)
        daemon.peer.settle(0.1)


def _amounts(cpu: int, memory: int) -> dict[str, str]:
    found = {"cpu": (cpu, "m"), "memory": (memory, "Mi")}
    return {name: f"{count}{unit}" for name, (count, unit) in found.items() if count}


def _many(uid: str, count: int, resources: int) -> Iterator[core.Container]:
    """Make containers of which all is read, with texts that no other pod has."""
    for at in range(count):
        ends = (f"{at}-{each}-{uid}" for each in range(resources))
        amounts = {f"example.com/{end}": f"{crc32(end.encode())}" for end in ends}
        yield container(f"c{at}-{uid}", amounts)


def _unread(data: bytes) -> bytes:
    """Encode a field that is not read: number 100, of bytes."""
    size, rest = b"", len(data)
    while rest > 127:
        size += bytes([rest & 127 | 128])
        rest >>= 7
    return b"\xa2\x06" + size + bytes([rest]) + data
