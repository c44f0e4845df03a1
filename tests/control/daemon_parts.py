"""What a control socket answers about, in this process, for tests."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import attrs
import pytest

from nri_resmgr.app.configuration.status import ConfigurationStatus, DocumentSource
from nri_resmgr.app.observing.history import History
from nri_resmgr.app.observing.sessions import SessionTracker
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.control.client import Client
from nri_resmgr.control.daemon_view import DaemonView
from nri_resmgr.control.http_server import serve
from nri_resmgr.control.listener import control_socket
from nri_resmgr.control.routes import site_of
from nri_resmgr.host.tree import HostTree
from nri_resmgr.log.levels import LogLevels
from nri_resmgr.policies import parse_config
from nri_resmgr.stub import (
    Container,
    LinuxCpu,
    LinuxMemory,
    LinuxPod,
    LinuxResources,
    Pod,
    RuntimeInfo,
)
from nri_resmgr.stub.model import HugepageLimit, LinuxContainer
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import ResmgrError

SECOND = 10**9
BEGIN = 1_700_000_000 * SECOND
"""2023-11-14T22:13:20Z; each thing that happens is a second later."""

STATUS = ConfigurationStatus(
    source=DocumentSource.BUILT_IN,
    name="",
    cached=False,
    kind="TopologyAwarePolicy",
    text="",
    accepted=1_700_000_000.0,
    generation=1,
    ineffective=(),
    rejected=0,
    error=None,
)


@attrs.define(eq=False, repr=False)
class Parts:
    """A plugin without a runtime, and what its control socket is about."""

    policy: ResourcePolicy
    history: History
    daemon: DaemonView
    reloads: list[bool] = attrs.field(factory=list)

    def pod(self, name: str, namespace: str = "shop") -> Pod:
        """Make a Guaranteed pod, with a secret."""
        return Pod(
            id=f"pod-{name}",
            name=name,
            uid=f"uid-{name}",
            namespace=namespace,
            annotations={"secret": "hunter2"},
            linux=LinuxPod(cgroup_parent=f"/kubepods.slice/kubepods-pod{name}.slice"),
        )

    def run(
        self, name: str, cpus: float, container: str = "main", pages: int = 0
    ) -> None:
        """Create and start a container in a pod of its own; a refusal is fine.

        It may use huge *pages* of 2 MiB.
        """
        pod = self.pod(name)
        linux = LinuxContainer(
            resources=LinuxResources(
                cpu=LinuxCpu(int(cpus * 1024), int(cpus * 100_000), 100_000),
                memory=LinuxMemory(limit=1 << 30),
                hugepage_limits=(HugepageLimit("2MB", pages << 21),),
            )
        )
        made = Container(
            id=f"id-{name}",
            name=container,
            pod_sandbox_id=pod.id,
            env=("PASSWORD=hunter2",),
            args=("--token", "hunter2"),
            linux=linux,
        )
        with contextlib.suppress(ResmgrError):
            self.policy.run_pod_sandbox(pod)
            self.policy.create_container(pod, made)
            self.policy.start_container(pod, made)

    def stop(self, name: str) -> None:
        """Stop the container of a pod."""
        made = Container(id=f"id-{name}", pod_sandbox_id=f"pod-{name}")
        self.policy.stop_container(self.pod(name), made)


def make_parts(machine: str = "1s2n4c1t", document: str = "", **more: Any) -> Parts:
    """Make them; the built-in configuration where there is no document."""
    clock = count(BEGIN, SECOND)
    history = History(more.pop("max_weight", 20_000), clock.__next__)
    config = parse_config(document) if document else None
    policy = ResourcePolicy(parse_spec(machine), config, observers=[history])
    reloads: list[bool] = []

    async def reload(*, force: bool) -> None:
        reloads.append(force)

    daemon = daemon_view(policy, history, **{"reload": reload, **more})
    policy.synchronize([], [])
    return Parts(policy, history, daemon, reloads)


def daemon_view(policy: ResourcePolicy, history: History, **more: Any) -> DaemonView:
    """Make what the control socket answers from; *more* replaces its other parts."""

    async def reload(*, force: bool) -> None:
        assert not force

    parts: dict[str, Any] = {
        "sessions": SessionTracker(history, lambda: BEGIN),
        "tree": HostTree("/"),
        "runtime": lambda: RuntimeInfo("containerd", "2.1.0"),
        "kubelet": tuple,
        "plugin": "90-resource-policy",
        "started": BEGIN,
        "levels": LogLevels(),
        "configuration": lambda: STATUS,
        "reload": reload,
    }
    return DaemonView(policy=policy, history=history, **{**parts, **more})


@contextlib.asynccontextmanager
async def asking(parts: Parts, folder: Path) -> AsyncIterator[Client]:
    """Serve the control socket until the block ends."""
    async with asking_view(parts.daemon, folder) as client:
        yield client


@contextlib.asynccontextmanager
async def asking_view(daemon: DaemonView, folder: Path) -> AsyncIterator[Client]:
    """Serve the control socket of a daemon until the block ends."""
    path = str(folder / "run" / "control.sock")
    with control_socket(path) as listener:
        task = asyncio.create_task(serve(site_of(daemon), listener))
        try:
            yield Client(path)
        finally:
            task.cancel()
            await asyncio.wait({task})


async def ask(client: Client, path: str, **query: str) -> dict[str, Any]:
    """Ask in a thread: the server is in this one."""
    return await asyncio.to_thread(client.get, path, **query)


def skip_unless_root() -> None:
    """Skip a test that plays another user."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
