"""A real kubelet on a real containerd, that leaves nothing behind."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any, Final, Self

from tests.deploy.node import Node
from tests.kubernetes.control_plane import ControlPlane, NotStarted, free_ports
from tests.kubernetes.kubectl import KubectlFailed
from tests.real_host.cgroups import Cgroup
from tests.real_host.patience import wait_until

# If the tests are killed, so is the kubelet (setpriv(1)).
_DIE_WITH_US: Final = ("setpriv", "--pdeathsig", "KILL")
# The kubelet writes them at its start.
# Source: Kubernetes, pkg/kubelet/cm/container_manager_linux.go, setupKernelTunables.
_TUNABLES: Final = (
    *("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic"),
    *("kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"),
)
# It finds files of ours where these are, and the machine keeps its own values. Device
# plugins have a fixed path, wherever its root directory is.
_IN_NODE: Final = """
for file in {names}; do mount --bind "$1/$file" "/proc/sys/$file"; done
mkdir -p "$2" /var/lib/kubelet/device-plugins
mount --bind "$2" /var/lib/kubelet/device-plugins
shift 2
exec "$@"
"""
# Dockershim was removed in 1.24; before that, the other runtimes had to be asked for.
_FIRST_WITHOUT_DOCKER: Final = (1, 24)
_SECONDS: Final = 300.0  # A start takes 5 on an idle machine.


class Kubelet:
    """The kubelet of a node that has a containerd; use it in a ``with`` block.

    It sees the mounts that this containerd sees, so that its own end with it, and makes
    cgroups below the one that is removed with it.

    Attributes:
        name: The node's in the cluster.

    Args:
        program: The file.
        control_plane: Of its cluster.
        node: A running one.
        name: A new one.
        folder: An empty one.
    """

    def __init__(
        self,
        program: Path,
        control_plane: ControlPlane,
        node: Node,
        name: str,
        folder: Path,
    ) -> None:
        self.name = name
        self._program = program
        self._control_plane = control_plane
        self._containerd = node.containerd
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        kubeconfig = self._folder / "kubeconfig.yaml"
        user = f"/O=system:nodes/CN=system:node:{self.name}"
        self._control_plane.write_certified(kubeconfig, user)
        config = self._folder / "config.yaml"
        config.write_text(json.dumps(self._config()))
        self._copy_tunables()
        # Its parent; the kubelet makes the last part itself.
        Cgroup(self._cgroup_root).create()
        try:
            self._start(kubeconfig, config)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it as a crash would, and remove the Node; its pods are the runtime's."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None
        self._control_plane.kubectl(
            *("delete", "node", self.name, "--ignore-not-found", "--wait=false")
        )

    def log_text(self) -> str:
        """All that it has printed."""
        return self._log.read_text(errors="replace")

    @property
    def root(self) -> Path:
        """Its root directory, with the sockets of its services."""
        return self._folder / "root"

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    @property
    def _cgroup_root(self) -> str:
        return self._containerd.cgroup_root.rpartition("/")[0]

    def _start(self, kubeconfig: Path, config: Path) -> None:
        socket = self._containerd.layout.cri_socket
        options: dict[str, object] = {
            "config": config,
            "kubeconfig": kubeconfig,
            "hostname-override": self.name,
            "root-dir": self.root,
            "cert-dir": self._folder / "certificates",
            "container-runtime-endpoint": f"unix://{socket}",
            "v": 2,
        }
        if self._control_plane.release < _FIRST_WITHOUT_DOCKER:
            options["container-runtime"] = "remote"
        flags = (f"--{name}={value}" for name, value in options.items())
        script = _IN_NODE.format(names=" ".join(_TUNABLES))
        mounts = f"--mount=/proc/{self._containerd.pid}/ns/mnt"
        command: list[str | Path] = [*_DIE_WITH_US, "nsenter", mounts]
        command += ["sh", "-ec", script, "sh", self._folder / "tunables"]
        command += [self.root / "device-plugins"]
        command += [self._program, *flags]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until(self._is_ready, f"the node to be ready (see {self._log})", _SECONDS)

    def _is_ready(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            end = "\n".join(self.log_text().splitlines()[-5:])
            raise NotStarted(f"the kubelet ended at once:\n{end}")
        try:
            status = self._control_plane.kubectl.get("node", self.name)["status"]
        except KubectlFailed:
            return False  # it has not registered yet
        return any(
            one["type"] == "Ready" and one["status"] == "True"
            for one in status.get("conditions", ())
        )

    def _copy_tunables(self) -> None:
        for name in _TUNABLES:
            copy = self._folder / "tunables" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(Path("/proc/sys", name).read_text())

    def _config(self) -> dict[str, Any]:
        """Return what keeps it off from this machine, and from its load.

        Source:
            Kubernetes, kubelet.config.k8s.io/v1beta1, KubeletConfiguration.
        """
        port, healthz = free_ports(2)
        resolv = self._folder / "resolv.conf"
        resolv.touch()
        authority = self._control_plane.certificates.authority
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": "127.0.0.1",
            "port": port,
            "healthzPort": healthz,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(authority)},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self._cgroup_root,
            "failSwapOn": False,
            "makeIPTablesUtilChains": False,
            "oomScoreAdj": 0,
            "resolvConf": str(resolv),
            "volumePluginDir": str(self._folder / "plugins"),
            # A disk or memory that is nearly full is this machine's, not the node's.
            "evictionHard": dict.fromkeys(
                (
                    *("memory.available", "nodefs.available", "nodefs.inodesFree"),
                    "imagefs.available",
                ),
                "0%",
            ),
            "imageGCHighThresholdPercent": 100,
        }
