"""Pods with the largest texts that the API server allows do not fill the daemon."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from nri_proto import nri_pb2 as pb
from nri_resmgr.checkpoint.encode import CHECKPOINT_NAME
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from tests.benchmarks.workload import container_of, pod_of
from tests.soak.daemon import Daemon, peer_of, running
from tests.soak.kubelet import await_kubelet, kubelet_of
from tests.soak.memory_cgroup import folder_on_disk, kills, memory_cgroup
from tests.soak.node import MACHINE
from tests.soak.peer import Peer

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(600)]

PODS: Final = 110  # the kubelet's default for a node
SESSIONS: Final = 10
GONE_BEFORE: Final = 40  # pods that come and go, one at a time

# The API server's limits. An object's whole text is in etcd's limit of a request.
ANNOTATIONS: Final = 256 << 10
OBJECT: Final = 1_500_000
VALUE: Final = 63  # characters of a label

TIMEOUT: Final = 2.0  # seconds; a runtime drops a plugin that takes longer

MESSAGE: Final = 3_500_000  # containerd cuts Synchronize a bit below 4 MiB

NAME_SPACE: Final = "resource-policy.nri.io"

CEILING: Final = 110 << 10  # KiB
AFTERWARDS: Final = 60 << 10  # KiB


def long_annotations(pod: pb.PodSandbox, _: pb.Container, number: int) -> None:
    """Many values that expressions could refer to, if they were fewer."""
    for at in range(ANNOTATIONS // 550):
        pod.annotations[f"n{number}-{at:05}.example.com/note"] = "v" * 500


def wide_annotations(pod: pb.PodSandbox, _: pb.Container, number: int) -> None:
    """Characters of which each takes four bytes."""
    for at in range(ANNOTATIONS // 900):
        pod.annotations[f"n{number}-{at}.example.com/note"] = "\U0001f40b" * 200


def our_annotations(pod: pb.PodSandbox, _: pb.Container, number: int) -> None:
    """Keys that are read: unknown ones, long ones, and lists for webhooks."""
    rules = f"  - {{match: {{key: name, values: [x{number}]}}}}\n" * 500
    pod.annotations[f"{NAME_SPACE}/affinity"] = f"c0:\n{rules}"[: 15 << 10]
    # Short enough for the start of a session.
    pod.annotations[f"{NAME_SPACE}/anti-affinity"] = f"c0:\n{rules}"[:4000]
    for at in range(2000):
        pod.annotations[f"unknown-{number}-{at}.{NAME_SPACE}/pod"] = "x" * 60
    entry = f'"container-{number}-%d": {{"requests": {{"cpu": "1m"}}}}'
    entries = ", ".join(entry % at for at in range(500))
    pod.annotations["noderesource.dev/resources"] = f'{{"containers": {{{entries}}}}}'


def labels(pod: pb.PodSandbox, _: pb.Container, number: int) -> None:
    """Labels, which only the size of the object limits."""
    for at in range(OBJECT // 320):
        pod.labels[f"l{number}-{at}.example.com/{'k' * 180}"] = "v" * VALUE


def small_labels(pod: pb.PodSandbox, _: pb.Container, number: int) -> None:
    """So many that their objects are larger than their texts."""
    for at in range(20_000):
        pod.labels[f"{number:x}-{at:x}"] = "1"


def environment(_: pb.PodSandbox, container: pb.Container, number: int) -> None:
    """Variables and arguments."""
    container.env.extend(f"V{number}_{at}=" + "e" * 900 for at in range(OBJECT // 1800))
    container.args.extend(f"--{number}-{at}=" + "a" * 900 for at in range(700))


KINDS: Final = (
    long_annotations,
    wide_annotations,
    our_annotations,
    labels,
    small_labels,
    environment,
)


@pytest.mark.parametrize("fill", KINDS, ids=lambda fill: fill.__name__)
def test_large_pods_stay_below_the_ceiling(
    fill: Callable[[pb.PodSandbox, pb.Container, int], None], tmp_path: Path
) -> None:
    machine = parse_spec(MACHINE)
    with (
        memory_cgroup() as cgroup,
        running(tmp_path, record_limit="", cgroup=cgroup) as daemon,
    ):
        daemon.peer.accept()
        synchronize(daemon.peer, [])
        for number in range(GONE_BEFORE):
            pod, container = hostile(fill, number, machine)
            come(daemon.peer, pod, container)
            leave(daemon.peer, pod, container)
        pods = [hostile(fill, number, machine) for number in range(PODS)]
        for pod, container in pods:
            come(daemon.peer, pod, container)
        for _ in range(SESSIONS):
            daemon.peer.hang_up()
            daemon.peer.accept()
            synchronize(daemon.peer, pods)
            visit(daemon.peer)
        alive = len(daemon.control.get("/v1/state")["containers"])
        after = emptied(daemon, pods)

        # For docs/security.md: pytest -s.
        print(fill.__name__, f"peak {peak(daemon) >> 10}, after {after >> 10} MiB")
        assert alive == PODS
        assert peak(daemon) <= CEILING
        assert after <= AFTERWARDS
        assert kills(cgroup) == 0


@pytest.mark.parametrize("fill", KINDS, ids=lambda fill: fill.__name__)
def test_starts_beside_large_pods_stay_below_the_ceiling(
    fill: Callable[[pb.PodSandbox, pb.Container, int], None], tmp_path: Path
) -> None:
    machine = parse_spec(MACHINE)
    pods = [hostile(fill, number, machine) for number in range(PODS)]
    peaks: list[int] = []
    with (
        memory_cgroup() as cgroup,
        peer_of(tmp_path) as peer,
        kubelet_of(tmp_path, pods) as kubelet,
    ):
        start = partial(
            running,
            tmp_path,
            record_limit="",
            cgroup=cgroup,
            peer=peer,
            kubelet=kubelet,
        )
        with start():
            peer.accept()
            synchronize(peer, [])
            for pod, container in pods:
                come(peer, pod, container)
        for end in (signal.SIGKILL, signal.SIGTERM, signal.SIGTERM):
            with start() as daemon:
                peer.accept()
                synchronize(peer, pods)
                visit(peer)
                await_kubelet(daemon)
                peaks.append(peak(daemon))
                os.kill(daemon.pid, end)
        with start() as daemon:
            peer.accept()
            synchronize(peer, pods)
            await_kubelet(daemon)
            alive = len(daemon.control.get("/v1/state")["containers"])
            after = emptied(daemon, pods)
            peaks.append(peak(daemon))

        # For docs/security.md: pytest -s.
        print(fill.__name__, f"peak {max(peaks) >> 10}, after {after >> 10} MiB")
        assert alive == PODS
        assert max(peaks) <= CEILING
        assert after <= AFTERWARDS
        assert kills(cgroup) == 0


@pytest.mark.parametrize(
    "fill", [long_annotations, labels, small_labels], ids=lambda fill: fill.__name__
)
def test_a_recording_of_large_pods_stays_below_the_limit(
    fill: Callable[[pb.PodSandbox, pb.Container, int], None],
) -> None:
    machine = parse_spec(MACHINE)
    pods = [hostile(fill, number, machine) for number in range(PODS)]
    with (
        memory_cgroup() as cgroup,
        folder_on_disk() as folder,
        running(folder, record_limit="256Mi", cgroup=cgroup) as daemon,
    ):
        daemon.peer.accept()
        synchronize(daemon.peer, [])
        for pod, container in pods:
            come(daemon.peer, pod, container)
        daemon.peer.hang_up()
        daemon.peer.accept()
        synchronize(daemon.peer, pods)
        visit(daemon.peer)
        state = daemon.control.get("/v1/state")
        (recording,) = [
            one for one in state["observability"] if one["name"] == "recording"
        ]

        # For docs/simulate.md: pytest -s.
        print(fill.__name__, f"peak {peak(daemon) >> 10} MiB", recording["value"])
        assert len(state["containers"]) == PODS
        assert kills(cgroup) == 0


MANY: Final = 5000
"""Containers: ten times what a large node has."""


def test_a_restart_with_very_many_containers_stays_below_the_limit(
    tmp_path: Path,
) -> None:
    machine = parse_spec(MACHINE)
    pods = [(pod_of(n), container_of(n, machine)) for n in range(MANY)]
    with (
        memory_cgroup() as cgroup,
        running(tmp_path, record_limit="", cgroup=cgroup) as daemon,
    ):
        for _ in range(2):
            daemon.peer.accept()
            synchronize(daemon.peer, pods)
            visit(daemon.peer)
            daemon.peer.hang_up()
        daemon.peer.accept()
        synchronize(daemon.peer, pods)
        alive = len(daemon.control.get("/v1/state")["containers"])

        print(f"{MANY} containers", f"peak {peak(daemon) >> 10} MiB")
        assert alive == MANY
        assert kills(cgroup) == 0


def test_a_new_process_beside_very_many_containers_stays_below_the_limit(
    tmp_path: Path,
) -> None:
    machine = parse_spec(MACHINE)
    pods = [(pod_of(n), container_of(n, machine)) for n in range(MANY)]
    with memory_cgroup() as cgroup, peer_of(tmp_path) as peer:
        start = partial(running, tmp_path, record_limit="", cgroup=cgroup, peer=peer)
        for _ in range(2):  # the second one has a checkpoint of the first
            with start() as daemon:
                peer.accept()
                synchronize(peer, pods)
                visit(peer)
                alive = len(daemon.control.get("/v1/state")["containers"])
                most = peak(daemon)

        print(f"{MANY} containers and a checkpoint", f"peak {most >> 10} MiB")
        assert (tmp_path / "state" / CHECKPOINT_NAME).stat().st_size > MANY
        assert alive == MANY
        assert kills(cgroup) == 0


CONTAINERS: Final = 50
"""Of each pod, whose annotations are read for each of them."""


def unknown_keys(number: int) -> dict[str, str]:
    """Keys that are compared with all known ones."""
    return {f"{'u' * 30}{number}-{at}.{NAME_SPACE}/pod": "" for at in range(64)}


def documents(number: int) -> dict[str, str]:
    """YAML, which takes the most time for a character."""
    return {f"{NAME_SPACE}/affinity": f"c0: [x{number}{',a' * 2000}]"}


@pytest.mark.parametrize(
    "annotations", [unknown_keys, documents], ids=lambda one: one.__name__
)
def test_many_containers_with_long_annotations_are_synchronized_in_time(
    annotations: Callable[[int], dict[str, str]], tmp_path: Path
) -> None:
    machine = parse_spec(MACHINE)
    pods = [pod_of(number) for number in range(PODS)]
    for number, pod in enumerate(pods):
        pod.annotations.update(annotations(number))
    node: list[tuple[pb.PodSandbox | None, pb.Container]] = []
    for at in range(PODS * CONTAINERS):
        turn, number = divmod(at, PODS)
        container = container_of(at, machine)
        container.pod_sandbox_id, container.name = pods[number].id, f"c{turn}"
        node.append((None if turn else pods[number], container))
    with running(tmp_path, record_limit="") as daemon:
        daemon.peer.accept()
        before = daemon.size().seconds
        synchronize(daemon.peer, node)
        took = daemon.size().seconds - before
        alive = len(daemon.control.get("/v1/state")["containers"])

        print(annotations.__name__, f"{took:.2f} s of a CPU")
        assert alive == PODS * CONTAINERS
        # On a busy machine, too. Without a bound for all pods it took 13 and 40 s.
        assert took < 3 * TIMEOUT


def visit(peer: Peer) -> None:
    """Let the runtime make the first request after a Synchronize."""
    answer = peer.call(
        "RunPodSandbox", pb.RunPodSandboxRequest(pod=pod_of(MANY + PODS))
    )
    assert not answer.why
    assert answer.seconds < TIMEOUT


def hostile(
    fill: Callable[[pb.PodSandbox, pb.Container, int], None],
    number: int,
    machine: Machine,
) -> tuple[pb.PodSandbox, pb.Container]:
    pod, container = pod_of(number), container_of(number, machine)
    fill(pod, container, number)
    return pod, container


def come(peer: Peer, pod: pb.PodSandbox, container: pb.Container) -> None:
    peer.call("RunPodSandbox", pb.RunPodSandboxRequest(pod=pod))
    for event in ("CreateContainer", "StartContainer"):
        request = pb.CreateContainerRequest(pod=pod, container=container)
        assert not peer.call(event, request).why


def leave(peer: Peer, pod: pb.PodSandbox, container: pb.Container) -> None:
    for event in ("StopContainer", "RemoveContainer"):
        request = pb.StopContainerRequest(pod=pod, container=container)
        assert not peer.call(event, request).why
    for event in ("StopPodSandbox", "RemovePodSandbox"):
        assert not peer.call(event, pb.RunPodSandboxRequest(pod=pod)).why


def emptied(daemon: Daemon, pods: Sequence[tuple[pb.PodSandbox, pb.Container]]) -> int:
    """Let all pods end; return what is resident then, KiB."""
    for pod, container in pods:
        leave(daemon.peer, pod, container)
    daemon.peer.settle(1.5)  # freed memory is returned after a second
    return daemon.size().resident


def synchronize(
    peer: Peer, pods: Sequence[tuple[pb.PodSandbox | None, pb.Container]]
) -> None:
    for request in chunks(pods):
        assert not peer.call("Synchronize", request).why


def chunks(
    pods: Sequence[tuple[pb.PodSandbox | None, pb.Container]],
) -> Iterator[pb.SynchronizeRequest]:
    """Cut a Synchronize as the runtimes do."""
    request, size = pb.SynchronizeRequest(more=True), 0
    for pod, container in pods:
        new = container.ByteSize() + (pod.ByteSize() if pod else 0)
        if size + new > MESSAGE:
            yield request
            request, size = pb.SynchronizeRequest(more=True), 0
        if pod:
            request.pods.append(pod)
        request.containers.append(container)
        size += new
    request.more = False
    yield request


def peak(daemon: Daemon) -> int:
    """Return the most memory that was resident, KiB."""
    status = Path(f"/proc/{daemon.pid}/status").read_text()
    rows = dict(line.split(":", 1) for line in status.splitlines())
    return int(rows["VmHWM"].split()[0])
