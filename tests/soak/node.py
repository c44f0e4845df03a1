"""A node on which pods start and end forever, and the pins of its containers."""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import attrs

from nri_proto import nri_pb2 as pb
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from tests.benchmarks.workload import container_of, pod_of
from tests.soak.peer import Answer, Peer

MACHINE: Final = "2s2n8c2t memory=64Gi cxl=32Gi"

_BUSY: Final = 40  # containers, which a node of this size has
_AT_ONCE: Final = 3  # pods that are coming or going
_CUT_SHORT: Final = 0.1  # of all pods: the stop of their container is not reported

Pin: TypeAlias = tuple[str, str]
Event: TypeAlias = Callable[[], Answer]

# For pods: read, unknown and invalid annotations; the number makes each of
# them differ from all before it.
ANNOTATIONS: Final[tuple[Callable[[int], dict[str, str]], ...]] = (
    lambda _: {},
    lambda _: {},
    lambda n: {"memory-type.resource-policy.nri.io": f"bad{n}"},
    lambda n: {f"unknown-{n}.resource-policy.nri.io/pod": "true"},
    lambda n: {"resource-policy.nri.io/affinity": f"container-{n}: [a{n}, b{n}]"},
    lambda _: {"cold-start.resource-policy.nri.io": "duration: 2s"},
    lambda _: {"prefer-shared-cpus.resource-policy.nri.io/pod": "true"},
    lambda n: {f"example.com/{n}": "x" * (n % 50_000)},
    lambda n: {"cpu.preserve.resource-policy.nri.io": "maybe" if n % 3 else "true"},
    lambda n: {"noderesource.dev/resources": _resources(n)},
)


def _resources(number: int) -> str:
    cpu = f"{50 + number % 100}m"
    resources = {"requests": {"cpu": cpu}, "limits": {"memory": "256Mi"}}
    return json.dumps({"containers": {f"container-{number}": resources}})


@attrs.define(eq=False)
class Lodger:
    """A pod with its container, which the plugin may know."""

    pod: pb.PodSandbox
    container: pb.Container
    pin: Pin = ("", "")

    def both(self) -> dict[str, Any]:
        """Return what most requests have."""
        cpu = self.container.linux.resources.cpu
        cpu.cpus, cpu.mems = self.pin
        return {"pod": self.pod, "container": self.container}


class BusyNode:
    """Makes one event after the other.

    Attributes:
        living: The containers that were created, by id.
        refused: How many were not.

    Args:
        peer: The plugin's other end.
        seed: Of what happens.
    """

    def __init__(self, peer: Peer, seed: int) -> None:
        self.living: dict[str, Lodger] = {}
        self.refused = 0
        self._peer = peer
        peer.take = self._learn
        self._machine: Machine = parse_spec(MACHINE)
        self._choose = random.Random(seed)  # noqa: S311 - a repeatable draw
        self._count = 0
        self._pods: dict[str, pb.PodSandbox] = {}
        self._open: list[deque[Event]] = []

    def step(self) -> float:
        """Make one event; return the seconds that the plugin took."""
        if len(self._open) < _AT_ONCE:
            self._open.append(deque(self._begin()))
        story = self._choose.choice(self._open)
        answer = story.popleft()()
        if not story:
            self._open.remove(story)
        return answer.seconds

    def reconnect(self) -> None:
        """End the session, start another, and synchronize all containers."""
        self._peer.hang_up()
        self._peer.accept()
        request = pb.SynchronizeRequest(pods=list(self._pods.values()))
        request.containers.extend(
            one.both()["container"] for one in self.living.values()
        )
        self._learn(self._peer.call("Synchronize", request).body.update)

    def resize(self) -> Answer:
        """Repeat the request of a container, and apply the reply.

        This reply carries updates that no earlier one could.
        """
        if not self.living:
            return self._report_of_pod("StopPodSandbox", pod_of(0))
        lodger = self._choose.choice(list(self.living.values()))
        resources = pb.LinuxResources()
        resources.CopyFrom(lodger.container.linux.resources)
        resources.cpu.cpus = resources.cpu.mems = ""
        request = pb.UpdateContainerRequest(**lodger.both(), linux_resources=resources)
        answer = self._peer.call("UpdateContainer", request)
        if answer.body is not None:
            self._learn(answer.body.update)
        return answer

    def _begin(self) -> Iterable[Event]:
        """Say what happens to a pod: it comes, changes, or goes."""
        busy = len(self.living)
        if busy and self._choose.random() < 0.2:
            return [self.resize]
        if self._choose.random() < 0.5 + (_BUSY - busy) / _BUSY:
            return self._arrival()
        return self._departure() if busy else [self.resize]

    def _arrival(self) -> Iterable[Event]:
        self._count += 1
        number = self._count
        pod = pod_of(number)
        for key, text in self._choose.choice(ANNOTATIONS)(number).items():
            pod.annotations[key] = text
        lodger = Lodger(pod, container_of(number, self._machine))
        return (
            lambda: self._report_of_pod("RunPodSandbox", pod),
            lambda: self._create(lodger),
            lambda: self._report("StartContainer", lodger),
        )

    def _departure(self) -> Iterable[Event]:
        lodger = self._choose.choice(list(self.living.values()))
        stop = (lambda: self._stop(lodger),)
        end = self._end_of(lodger)
        return end if self._choose.random() < _CUT_SHORT else stop + end

    def _end_of(self, lodger: Lodger) -> tuple[Event, ...]:
        return (
            lambda: self._stop_pod(lodger),
            lambda: self._report("RemoveContainer", lodger),
            lambda: self._report_of_pod("RemovePodSandbox", lodger.pod),
        )

    def _create(self, lodger: Lodger) -> Answer:
        lodger.container.state = pb.CONTAINER_CREATED
        request = pb.CreateContainerRequest(**lodger.both())
        answer = self._peer.call("CreateContainer", request)
        lodger.container.state = pb.CONTAINER_RUNNING
        if answer.body is None:
            self.refused += 1
            self._open.append(deque(self._end_of(lodger)))
            return answer
        cpu = answer.body.adjust.linux.resources.cpu
        lodger.pin = cpu.cpus, cpu.mems
        self.living[lodger.container.id] = lodger
        self._learn(answer.body.update)
        return answer

    def _stop(self, lodger: Lodger) -> Answer:
        self.living.pop(lodger.container.id, None)
        request = pb.StopContainerRequest(**lodger.both())
        answer = self._peer.call("StopContainer", request)
        if answer.body is not None:
            self._learn(answer.body.update)
        return answer

    def _stop_pod(self, lodger: Lodger) -> Answer:
        self.living.pop(lodger.container.id, None)
        return self._report_of_pod("StopPodSandbox", lodger.pod)

    def _report(self, method: str, lodger: Lodger) -> Answer:
        kinds = {
            "StartContainer": pb.StartContainerRequest,
            "RemoveContainer": pb.RemoveContainerRequest,
        }
        return self._peer.call(method, kinds[method](**lodger.both()))

    def _report_of_pod(self, method: str, pod: pb.PodSandbox) -> Answer:
        kinds = {
            "RunPodSandbox": pb.RunPodSandboxRequest,
            "StopPodSandbox": pb.StopPodSandboxRequest,
            "RemovePodSandbox": pb.RemovePodSandboxRequest,
        }
        if method == "RunPodSandbox":
            self._pods[pod.id] = pod
        else:
            self._pods.pop(pod.id, None)
        return self._peer.call(method, kinds[method](pod=pod))

    def _learn(self, updates: Iterable[pb.ContainerUpdate]) -> None:
        for update in updates:
            if lodger := self.living.get(update.container_id):
                cpu = update.linux.resources.cpu
                cpus, mems = lodger.pin
                lodger.pin = cpu.cpus or cpus, cpu.mems or mems
