"""A node of a cluster: a containerd, and directories of the host that are its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, Self

import attrs

from tests.deploy.kubelet import POD_ADDRESS, Kubelet, Wanted
from tests.deploy.translated import Probe
from tests.real_host.binaries import Binaries
from tests.real_host.containerd import Containerd

# What the node has apart from this machine: the daemon's directories are in these, and
# the runtime has to find them where the daemon says they are.
_OWN: Final = ("run", "var/lib", "var/log")
_CONTAINERD: Final = """#!/bin/sh
exec unshare --mount sh -ec '
for folder in {own}; do mount --bind {host}/$folder /$folder; done
mkdir -p /run/nri
mount --bind {nri} /run/nri
exec {program} "$@"' sh "$@"
"""

# A network of a pod's own, with nothing in it but the loopback device: what listens
# there conflicts with nothing. It is called once for that device, once for the other.
_CNI: Final = """#!/bin/sh
cat >/dev/null
[ "$CNI_COMMAND" != ADD ] || nsenter --net="$CNI_NETNS" {python} -c '
import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh", b"lo", 1))'
echo '{result}'
"""
_NETWORK: Final = {
    "cniVersion": "0.3.1",
    "interfaces": [{"name": "eth0", "sandbox": "/own"}],
    "ips": [{"version": "4", "interface": 0, "address": f"{POD_ADDRESS}/8"}],
}
_GET: Final = """
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=5).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""


@attrs.frozen(eq=False)
class DaemonPod:
    """The pod of a DaemonSet, running.

    Attributes:
        wanted: What it was made of.
        sandbox: Its id.
        container: Its only container's id.
    """

    node: Node = attrs.field(repr=False)
    wanted: Wanted = attrs.field(repr=False)
    sandbox: str
    container: str

    def ask(self, probe: Probe) -> int:
        """Ask what a kubelet asks; return the HTTP status, 0 without an answer."""
        url = f"http://{POD_ADDRESS}:{probe.port}{probe.path}"
        network = f"/proc/{self.process()}/ns/net"
        done = subprocess.run(
            ["nsenter", f"--net={network}", sys.executable, "-IS", "-c", _GET, url],
            capture_output=True,
            text=True,
            check=False,
        )
        return int(done.stdout or 0)

    def process(self) -> int:
        """Id of the daemon, as this machine counts."""
        config = self.wanted.sandbox
        cgroup = f"{config.linux.cgroup_parent}/{self.container}"
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if cgroup in (process / "cgroup").read_text():
                    return int(process.name)
            except OSError:
                continue  # it ended meanwhile
        raise ProcessLookupError(f"the daemon has ended:\n{self.log()}")

    def exec(self, *command: str) -> str:
        """Run *command* in the container."""
        return self.node.containerd.cri.exec_sync(self.container, command)

    def log(self) -> str:
        """What the daemon has printed."""
        return self.wanted.log.read_text()

    def remove(self) -> None:
        """End it as a kubelet does, and forget it."""
        cri = self.node.containerd.cri
        cri.stop_container(self.container, self.wanted.grace)
        cri.stop_pod_sandbox(self.sandbox)
        cri.remove_pod_sandbox(self.sandbox)


class Node:
    """Use it in a ``with`` block.

    Attributes:
        containerd: Its runtime.
        host: Holds the node's ``/run``, ``/var/lib`` and ``/var/log``.

    Args:
        programs: A containerd release.
        folder: An empty one with a short path.
    """

    def __init__(self, programs: Binaries, folder: Path) -> None:
        self.host = folder / "host"
        self._ctr = programs.ctr
        self._release = programs
        wrapped = attrs.evolve(programs, containerd=folder / "bin" / "containerd")
        self.containerd = Containerd(wrapped, folder / "cd")
        self._bin = folder / "bin"

    def __enter__(self) -> Self:
        for name in _OWN:
            (self.host / name).mkdir(parents=True)
        layout = self.containerd.layout
        layout.create()
        self._bin.mkdir()
        for path in self._release.containerd.parent.glob("containerd-shim*"):
            (self._bin / path.name).symlink_to(path)
        (self._bin / "ctr").symlink_to(self._ctr)
        _program(
            self._bin / "containerd",
            _CONTAINERD.format(
                own=" ".join(_OWN),
                host=self.host,
                nri=layout.nri_socket.parent,
                program=self._release.containerd,
            ),
        )
        answer = json.dumps(_NETWORK)
        for name in ("own", "loopback"):
            _program(
                layout.cni / name, _CNI.format(python=sys.executable, result=answer)
            )
        network = {"cniVersion": "0.3.1", "name": "pods", "plugins": [{"type": "own"}]}
        (layout.cni / "own.conflist").write_text(json.dumps(network))
        self.containerd.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.containerd.close()

    @property
    def kubelet(self) -> Kubelet:
        """What makes pods of manifests."""
        folder = self.containerd.layout.folder / "pods"
        return Kubelet(self.containerd.cgroup_root, folder, self.seen)

    def seen(self, path: str) -> Path:
        """Where to find a path of the node from here."""
        path = path.replace("/var/run/", "/run/", 1)
        if path == "/run/nri":
            return self.containerd.layout.nri_socket.parent
        if any(path.startswith(f"/{name}/") for name in _OWN):
            return self.host / path.lstrip("/")
        return Path(path)

    def take_image(self, archive: Path) -> None:
        """Import an image as the README describes."""
        socket = self.containerd.layout.cri_socket
        flags = ("--local", "--snapshotter", "native")  # this containerd's
        subprocess.run(
            [
                self._ctr,
                "-a",
                socket,
                "-n",
                "k8s.io",
                "images",
                "import",
                *flags,
                archive,
            ],
            check=True,
            capture_output=True,
        )

    def run(self, objects: tuple[dict[str, Any], ...]) -> DaemonPod:
        """Run the pod of the rendered DaemonSet, without a wait for its probes."""
        wanted, cri = self.kubelet.wanted(objects), self.containerd.cri
        sandbox = cri.run_pod_sandbox(wanted.sandbox)
        container = cri.create_container(sandbox, wanted.container, wanted.sandbox)
        cri.start_container(container)
        return DaemonPod(self, wanted, sandbox, container)


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
