"""A real containerd, apart from the machine's own, that leaves nothing behind."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.real_host.binaries import SEARCH_PATH, Binaries, binaries
from tests.real_host.cgroups import CpuShare
from tests.real_host.containerd_config import Layout, Options, config_text
from tests.real_host.cri import CallFailed, CriClient
from tests.real_host.image import PAUSE, WORK, write_archive
from tests.real_host.leftovers import sweep
from tests.real_host.patience import patience, wait_until
from tests.real_host.pods import Pod, PodSpec
from tests.real_host.runs import own_name

# If the tests are killed, so is the daemon (setpriv(1)).
_DIE_WITH_US = ("setpriv", "--pdeathsig", "KILL")


class NotStarted(Exception):
    """containerd ended instead of serving; the text is the end of its log."""


class Containerd:
    """One containerd, which may be stopped, killed and started again.

    Attributes:
        layout: Sockets, plugin folders, log.
        release: Major and minor number.
        cri: A client that outlives restarts.
        cgroup_root: Parent of all its pods' cgroups, called as a kubelet with a
            cgroup root of its own would call it.
    """

    def __init__(
        self, programs: Binaries, folder: Path, options: Options | None = None
    ) -> None:
        self.layout = Layout(folder)
        self.release = programs.release
        self.cri = CriClient(self.layout.cri_socket)
        name = hashlib.sha256(bytes(folder)).hexdigest()[:8]
        self._cgroup_top = f"/{own_name(name)}"
        self.cgroup_root = f"{self._cgroup_top}/kubepods"
        self._programs = programs
        self._options = options or Options()
        self._daemon: subprocess.Popen[bytes] | None = None

    def start(self, within: CpuShare | None = None) -> None:
        """Start it with the state of its last run; return when CRI and NRI are served.

        Args:
            within: A cgroup for it and the plugins that it launches.

        Raises:
            NotStarted: It ended again; the end of the log is quoted.
            TooSlow: It neither served nor ended.
        """
        config = self._write_config()
        folder = self._programs.containerd.parent
        with self.layout.log.open("ab") as log:
            self._daemon = subprocess.Popen(
                [*_DIE_WITH_US, self._programs.containerd, "--config", config],
                # Plugins inherit it; `leftovers` finds them by it.
                cwd=self.layout.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | {"PATH": f"{folder}:{SEARCH_PATH}"},
                start_new_session=True,
            )
        if within is not None:
            within.add(self._daemon.pid)
        wait_until(self._is_serving, f"containerd to serve (see {self.layout.log})", 30)
        if not {PAUSE, WORK} <= self.cri.image_tags():
            self._import_images()

    def stop(self) -> None:
        """End the daemon as systemd does; the containers go on."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the daemon with SIGKILL; the containers go on."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    def is_up(self) -> bool:
        """Whether the daemon was started and has not ended."""
        return self._daemon is not None and self._daemon.poll() is None

    @property
    def pid(self) -> int:
        """Of the running daemon."""
        assert self._daemon is not None
        return self._daemon.pid

    def close(self) -> None:
        """End everything, containers included, and remove every trace."""
        self.kill()
        self.cri.close()
        sweep(self.layout, self._cgroup_top)

    def run_pod(self, spec: PodSpec) -> Pod:
        """Start a pod; its containers come by `Pod.start` or `Pod.create`."""
        return Pod.run(self.cri, spec, self.cgroup_root)

    def remove_pods(self) -> None:
        """Remove all pods with their containers."""
        for pod in self.cri.pod_sandboxes():
            self.cri.stop_pod_sandbox(pod.id)
            self.cri.remove_pod_sandbox(pod.id)

    def log_text(self) -> str:
        """All that it has printed so far."""
        return self.layout.log.read_text(errors="replace")

    def _write_config(self) -> Path:
        self.layout.create()
        text = config_text(self.layout, self.release, self._options)
        self.layout.config.write_text(text)
        return self.layout.config

    def _is_serving(self) -> bool:
        if not self.is_up():
            end = "\n".join(self.log_text().splitlines()[-5:])
            raise NotStarted(f"containerd ended at once:\n{end}")
        listening = _listening_sockets()
        if not {str(self.layout.cri_socket), str(self.layout.nri_socket)} <= listening:
            return False
        try:
            self.cri.pod_sandboxes()
        except CallFailed:
            return False  # "server is not initialized yet"
        return True

    def _import_images(self) -> None:
        archive = self.layout.folder / "images.tar"
        write_archive(archive)
        address, ctr = self.layout.cri_socket, self._programs.ctr
        # The transfer API, 2.x's other way, only unpacks into the default snapshotter.
        flags = ("--local", "--snapshotter", "native")
        subprocess.run(
            [ctr, "-a", address, "-n", "k8s.io", "images", "import", *flags, archive],
            check=True,
            capture_output=True,
        )
        # The CRI plugin hears of new images by an event.
        wait_until(lambda: {PAUSE, WORK} <= self.cri.image_tags(), "the images")

    def _end(self, how: signal.Signals) -> None:
        if self._daemon is None:
            return
        self._daemon.send_signal(how)
        self._daemon.wait(patience(20))
        self._daemon = None


@contextmanager
def running_containerd(
    version: str, folder: Path, options: Options | None = None
) -> Iterator[Containerd]:
    """Run a containerd below *folder* for the length of a ``with`` block.

    Args:
        version: A name from `offered_versions`.
        folder: Its home; a short path, because sockets lie in it.
        options: Time-outs and the like.

    Raises:
        PackageUnavailable: This machine cannot run it; the text says why.
    """
    containerd = Containerd(binaries(version), folder, options)
    try:
        containerd.start()
        yield containerd
    finally:
        containerd.close()


def _listening_sockets() -> frozenset[str]:
    """Paths of listening unix sockets, found without connecting.

    NRI takes each connection, however short, for a plugin.

    Source:
        proc_net(5), /proc/net/unix; linux/net.h, __SO_ACCEPTCON.
    """
    rows = (row.split() for row in Path("/proc/net/unix").read_text().splitlines())
    return frozenset(row[7] for row in rows if len(row) > 7 and row[3] == "00010000")
