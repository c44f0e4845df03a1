"""The booted node, as its administrator, its kubelet and its kernel see it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Final

import attrs

from nri_resmgr.control.client import AnswerLost, Client, NoDaemon
from nri_resmgr.daemon.defaults import DEFAULT_CONTROL_SOCKET
from tests.real_host.cri import CallFailed, CriClient
from tests.real_host.image import WORK, write_archive
from tests.real_host.patience import patience, wait_until
from tests.real_host.pods import Container, Pod, PodSpec
from tests.real_host.resources import Resources

UNIT: Final = "nri-resmgr.service"
PROGRAM: Final = "/opt/nri-resmgr/bin/nri-resmgr"
_CRI_SOCKET: Final = Path("/run/containerd/containerd.sock")
_SANDBOX: Final = "registry.k8s.io/pause:3.8"  # what containerd asks for by default


def run(*command: str) -> str:
    """Run a command to its end, and return what it printed.

    Raises:
        CommandFailed: It did not exit with 0; the text has what it said.
    """
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=patience(20), check=False
    )
    if done.returncode:
        raise CommandFailed(f"{' '.join(command)}: {done.returncode}: {done.stderr}")
    return done.stdout


def show(unit: str, *names: str) -> tuple[str, ...]:
    """Return properties of a unit, in the order of their names."""
    flags = [word for name in names for word in ("-p", name)]
    text = run("systemctl", "show", unit, *flags)
    rows = (row.partition("=") for row in text.splitlines())
    found = {name: value for name, _, value in rows}
    return tuple(found[name] for name in names)


@attrs.frozen
class Service:
    """Our service.

    Attributes:
        state: What systemd says: ``active``, ``activating``.
        pid: Its process.
        restarts: How often systemd has started it by itself.
    """

    state: str
    pid: int
    restarts: int

    @classmethod
    def now(cls) -> Service:
        """Ask systemd."""
        state, pid, restarts = show(UNIT, "ActiveState", "MainPID", "NRestarts")
        return cls(state, int(pid), int(restarts))


class Node:
    """A node whose kubelet is us; its pods stay until the machine ends."""

    def __init__(self, cri: CriClient) -> None:
        self._cri = cri
        self._containers: dict[str, Container] = {}

    def fill(self, folder: Path) -> None:
        """Bring the images."""
        archive = folder / "images.tar"
        write_archive(archive, _SANDBOX)
        run("ctr", "-n", "k8s.io", "images", "import", str(archive))
        self._wait_for_runtime()
        wait_until(lambda: {WORK, _SANDBOX} <= self._cri.image_tags(), "the images")

    def start(self, name: str, resources: Resources) -> None:
        """Start a container in a pod of its own."""
        self._wait_for_runtime()
        spec = PodSpec(name, resources.qos)
        pod = Pod.run(self._cri, spec, "/kubepods.slice")
        self._containers[name] = pod.start(name, resources)

    def scope(self, name: str) -> Path:
        """The cgroup of a container; its last name is that of the unit."""
        [folder] = self._containers[name].cgroup.folders()
        return folder

    def seen(self) -> dict[str, str]:
        """CPUs that the kernel lets each container use."""
        return {name: one.cpus() for name, one in self._containers.items()}

    def _wait_for_runtime(self) -> None:
        """Wait for a connection: attempts of the client end before it answers."""
        wait_until(self._serves_cri, "the runtime to answer")

    def _serves_cri(self) -> bool:
        try:
            self._cri.pod_sandboxes()
        except CallFailed:
            return False
        return True


def reported() -> dict[str, str]:
    """CPUs that each container has for the daemon."""
    return {one["name"]: one["cpus"] for one in state()["containers"]}


def state() -> dict[str, Any]:
    """The daemon's whole status."""
    return Client(DEFAULT_CONTROL_SOCKET).get("/v1/state")


def pid_in_sync() -> int | None:
    """Return the process that has heard from the runtime what runs, if there is one."""
    try:
        now = state()
    except (NoDaemon, AnswerLost):  # none yet, or one that hangs
        return None
    return now["daemon"]["pid"] if now["session"]["state"] == "synchronized" else None


class CommandFailed(Exception):
    """A command of the administrator did not do its part."""
