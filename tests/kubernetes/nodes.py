"""A node of a cluster in tests: its daemon, its agent, and what the cluster shows."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from nri_resmgr.cli.workload import Workload
from nri_resmgr.control.client import Client
from nri_resmgr.values import QosClass
from tests.cli.command import nri_resmgr
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.test_control import at_work, socket_in
from tests.kubernetes.accounts import Account
from tests.kubernetes.kubectl import Kubectl, KubectlFailed

CRDS: Final = Path(__file__).parents[2] / "deploy/crds"
API: Final = "config.nri/v1alpha1"
# As in the sentence about a missing right: group, resource and verb.
_RULE: Final = re.compile(
    r'apiGroups: \["([^"]*)"\], resources: \["([^"]+)"\].*? verbs: \["(\w+)"\]'
)


def policy(name: str, cpu: str, kind: str = "StaticPolicy", **more: object) -> Any:
    """Return a document that its reserved CPU distinguishes from others."""
    spec = {"reservedResources": {"cpu": cpu}, "allowLoss": True, **more}
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


@attrs.define(eq=False)
class Node:
    """A node of the cluster, with a daemon and an agent."""

    name: str
    folder: Path
    account: Account
    kubectl: Kubectl

    def status(self) -> Any:
        """The status that the cluster shows of it."""
        try:
            return self.kubectl.get("nrm", self.name).get("status", {})
        except KubectlFailed:
            return {}

    def condition(self, kind: str = "ConfigurationApplied") -> tuple[str, str, str]:
        """Status, reason and message of a condition."""
        for one in self.status().get("conditions", ()):
            if one["type"] == kind:
                return one["status"], one["reason"], one["message"]
        return "", "", ""

    def source(self) -> str:
        """Name of the object that counts, as the cluster shows it."""
        return str(self.status().get("observed", {}).get("name", ""))

    def reserved(self) -> str:
        """The reserved CPUs, as the daemon has them in force."""
        return str(self.state()["cpus"]["reserved"])

    def state(self) -> Any:
        """The daemon's state."""
        # Not by the command, which takes long where it is asked again and again.
        return Client(str(socket_in(self.folder))).get("/v1/state")

    def label(self, *labels: str) -> None:
        """Set or remove labels of the Node."""
        self.kubectl("label", "--overwrite", "node", self.name, *labels)

    @property
    def daemon_flags(self) -> tuple[str, ...]:
        """The daemon's flags that lead it and the agent together."""
        socket = socket_in(self.folder)
        return "--spool", str(self.folder / "spool"), "--control-socket", str(socket)

    @asynccontextmanager
    async def agent(
        self, *flags: str, kubeconfig: Path | None = None
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        """Run the agent's process.

        Args:
            flags: The last one of a name counts.
            kubeconfig: Its file; one with a new token by default.
        """
        if kubeconfig is None:
            kubeconfig = self.account.kubeconfig(self.folder / "agent.yaml")
        before = self.log().count("agent.started")
        with (self.folder / "agent.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "nri_resmgr", "agent"),
                *("--node-name", self.name, "--kubeconfig", str(kubeconfig)),
                *("--spool", str(self.folder / "spool")),
                *("--control-socket", str(socket_in(self.folder))),
                *("--kinds", "StaticPolicy,BalloonsPolicy", *flags),
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        try:
            # Before that a signal ends it as any process.
            await until(lambda: self.log().count("agent.started") > before)
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            assert await process.wait() == 0

    def missing_rights(self) -> list[tuple[str, str, str]]:
        """Group, resource and verb of each right that its agents have missed."""
        return _RULE.findall(self.log())

    def log(self) -> str:
        """What its agents have logged."""
        file = self.folder / "agent.log"
        return file.read_text() if file.exists() else ""


@asynccontextmanager
async def daemon_of(node: Node, *flags: str) -> AsyncIterator[RunningDaemon]:
    """Run the node's daemon, with a container that has exclusive CPUs."""
    # Of the run before.
    shutil.rmtree(node.folder / "host", ignore_errors=True)
    (node.folder / "log").unlink(missing_ok=True)
    async with at_work(node.folder, *node.daemon_flags, *flags) as running:
        yield running


async def place(running: RunningDaemon, name: str) -> str:
    """Run another pod, as a kubelet would; return the CPUs of its container."""
    asked = Workload(name, QosClass.BURSTABLE, 100)
    await running.runtime.run_pod(asked.pod)
    created = await running.runtime.create_container(asked.pod.id, asked.container)
    cpu = created.adjustment.resources.cpu
    return cpu.cpus if cpu else ""


def status_of(node: Node) -> str:
    """Return what `nri-resmgr status` prints."""
    env = {"NRI_RESMGR_CONTROL_SOCKET": str(socket_in(node.folder))}
    return nri_resmgr("status", env=env).stdout


async def until(condition: Callable[[], Any], seconds: float = 90.0) -> None:
    """Wait; what is asked runs in a thread, as `kubectl` takes a while."""
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110 - of processes
            await asyncio.sleep(0.1)
