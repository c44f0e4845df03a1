"""A runtime and a kernel in files, under a policy that is verified."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nri_resmgr.app.metrics.counters import Metrics
from nri_resmgr.app.observing.history import History
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.app.verification.inspection import Inspection
from nri_resmgr.app.verification.report import DriftReport
from nri_resmgr.app.verification.verifier import Verification, VerificationOptions
from nri_resmgr.policies import parse_config
from nri_resmgr.stub import Container, ContainerUpdate, LinuxPod, LinuxResources, Pod
from nri_resmgr.stub.model import LinuxContainer
from nri_resmgr.stub.update_sender import UpdateSender
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import ResmgrError
from tests.app.node import asking_for
from tests.verification.cgroup_trees import V2, tree_with, v2

GRACE = 0.01
OPTIONS = VerificationOptions(0.0, grace=GRACE)
ONLY_TELLS = VerificationOptions(30.0, repairs=False, grace=GRACE)
PARENT = "kubepods.slice"


class FakeHost:
    """Plays what stands below the policy; containers are in pods of their own.

    Attributes:
        policy: Decides.
        history: Has the events.
        metrics: Counts.
        verification: Looks at the files.
        calls: Unsolicited updates, by call.
        takes: Whether updates have the effect that they should.
        suspects: Programs that are known to write the same files.
    """

    def __init__(
        self,
        root: Path,
        document: str = "",
        *,
        machine: str = "1s2n4c1t",
        options: VerificationOptions = OPTIONS,
        now: Callable[[], int] | None = None,
    ) -> None:
        self.history = History(now=now) if now else History()
        self.metrics = Metrics()
        self.policy = ResourcePolicy(
            parse_spec(machine),
            parse_config(document) if document else None,
            observers=[self.history, self.metrics],
        )
        self.policy.use_update_sender(UpdateSender(self))
        self.calls: list[dict[str, str]] = []
        self.may_call, self.quiet_seconds = True, math.inf
        self.takes = True
        self.suspects: Sequence[str] = ()
        self._root = root
        self._online = self.policy.machine.online
        self.tree = tree_with(root, V2)
        self.set_online(str(self._online))
        self._running: dict[str, dict[str, str]] = {}
        report = DriftReport(self.history, self.metrics.drift, lambda: self.suspects)
        self.verification = Verification(
            self.policy,
            Inspection(self.tree),
            self.history,
            report,
            options,
        )

    async def update_containers(
        self, updates: Iterable[ContainerUpdate]
    ) -> tuple[ContainerUpdate, ...]:
        """See `nri_resmgr.stub.update_sender.ContainerUpdater`."""
        self.calls.append({one.container_id: _cpus(one) for one in updates})
        if self.takes:
            self._take(updates)
        return ()

    def set_online(self, cpus: str) -> None:
        """Have these CPUs online."""
        tree_with(self._root, {"online": cpus}, "sys/devices/system/cpu")

    def create(self, name: str, cpus: float) -> None:
        """Create and start a container, if there is room."""
        linux = LinuxContainer(
            resources=asking_for(cpus), cgroups_path=f"{PARENT}:cri-containerd:{name}"
        )
        pod = self._pod(name)
        container = Container(
            id=name, name=name, pod_sandbox_id=pod.id, linux=linux, created_at=1
        )
        self.policy.run_pod_sandbox(pod)
        try:
            reply = self.policy.create_container(pod, container)
        except ResmgrError:
            return
        self._running[name] = {"weight": _weight(int(cpus * 1024))}
        self._folder(name).mkdir(parents=True, exist_ok=True)
        if reply is not None:
            adjustment = reply.adjustment
            self._take(reply.updates)
            if adjustment is not None and adjustment.linux is not None:
                self._apply(name, adjustment.linux.resources)

    def resize(self, name: str, cpus: float) -> None:
        """Request other amounts for a running container."""
        if name in self._running:
            container = Container(id=name, name=name, pod_sandbox_id=f"pod-{name}")
            try:
                updates = self.policy.update_container(
                    self._pod(name), container, asking_for(cpus)
                )
            except ResmgrError:
                return
            self._running[name]["weight"] = _weight(int(cpus * 1024))
            self._take(updates)

    def stop(self, name: str) -> None:
        """Stop a container; its cgroup goes with it."""
        if name in self._running:
            del self._running[name]
            for file in self._folder(name).iterdir():
                file.unlink()
            self._folder(name).rmdir()
            container = Container(id=name, name=name, pod_sandbox_id=f"pod-{name}")
            self._take(self.policy.stop_container(self._pod(name), container))

    def write(self, name: str, **values: str) -> None:
        """Write a container's cgroup: cpus, mems, weight, requested."""
        known = self._running[name]
        known |= values
        files: Mapping[str, str] = {"cpus": str(self._online), **known}
        tree_with(self._root, v2(f"{PARENT}/cri-containerd-{name}.scope", **files))

    async def round(self) -> dict[str, str]:
        """Verify, let updates arrive, and return what was found by container."""
        await self.verification.round()
        for _ in range(10):
            await asyncio.sleep(0)
        return {
            key: self.verification.finding_of(key).verdict.value
            for key in self._running
        }

    def events(self) -> list[tuple[str, str, str]]:
        """Return what was noted of drift: kind, container, difference."""
        return [
            (row.kind, row.title.rpartition("/")[2], row.word)
            for row in self.history.since(0, 1000)
            if not (row.reasons or row.updates) and row.kind != "node.synchronized"
        ]

    def cpus_of(self, name: str) -> str:
        """Read the CPUs that a container has."""
        return (self._folder(name) / "cpuset.cpus.effective").read_text().strip()

    def _take(self, updates: Iterable[ContainerUpdate]) -> None:
        for one in updates:
            self._apply(one.container_id, one.resources)

    def _apply(self, name: str, resources: LinuxResources | None) -> None:
        cpu: Any = resources and resources.cpu
        if cpu is None:
            self.write(name)
            return
        values = {"cpus": cpu.cpus, "requested": cpu.cpus, "mems": cpu.mems}
        values["weight"] = _weight(cpu.shares or 0)
        self.write(name, **{key: text for key, text in values.items() if text})

    def _folder(self, name: str) -> Path:
        return self._root / f"sys/fs/cgroup/{PARENT}/cri-containerd-{name}.scope"

    def _pod(self, name: str) -> Pod:
        linux = LinuxPod(cgroup_parent=f"/kubepods.slice/kubepods-pod{name}.slice")
        return Pod(id=f"pod-{name}", name=name, namespace="shop", linux=linux)


def _weight(shares: int) -> str:
    # As runc has always written it, until of late.
    inside = max(2, min(shares, 262_144))
    return str(1 + (inside - 2) * 9999 // 262_142) if shares else ""


def _cpus(update: ContainerUpdate) -> str:
    cpu = update.resources.cpu
    return cpu.cpus if cpu else ""
