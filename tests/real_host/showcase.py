"""``make run-containerd``: a real containerd, the plugin, two pods, their CPUs."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.real_host.binaries import binaries, offered_versions
from tests.real_host.containerd import Containerd, running_containerd
from tests.real_host.debian import PackageUnavailable
from tests.real_host.documents import STATIC
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import Container, PodSpec
from tests.real_host.resources import Resources


def main() -> int:
    """Run the show on the newest containerd that can be had; return the status."""
    for version in reversed(offered_versions()):
        try:
            binaries(version)
        except PackageUnavailable as reason:
            print(f"containerd ({version}): {reason}", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory(prefix="nri-") as folder:
            _show(version, Path(folder))
        return 0
    return 1


def _show(version: str, folder: Path) -> None:
    with running_containerd(version, folder / "cd") as daemon:
        release = ".".join(map(str, daemon.release))
        print(f"containerd {release} is up; NRI socket {daemon.layout.nri_socket}")
        socket, log = daemon.layout.nri_socket, folder / "plugin.log"
        with PluginProcess.resource_policy(socket, log, document=STATIC):
            print("the plugin is registered and synchronized\n")
            _play(daemon)


def _play(daemon: Containerd) -> None:
    shared = _start(daemon, "web", Resources.best_effort())
    _report("a BestEffort pod starts", shared)
    exclusive = _start(daemon, "db", Resources.guaranteed(1))
    _report("a Guaranteed pod with 1 CPU starts", shared, exclusive)
    exclusive.stop()
    _report("the Guaranteed pod stops", shared)


def _start(daemon: Containerd, name: str, resources: Resources) -> Container:
    return daemon.run_pod(PodSpec(name, qos=resources.qos)).start(name, resources)


def _report(what: str, *containers: Container) -> None:
    print(f"{what}; /proc/self/status inside says")
    for container in containers:
        print(f"  {container.name:4} Cpus_allowed_list: {container.cpus()}")
        print(f"  {'':4} Mems_allowed_list: {container.mems()}")
    print()


if __name__ == "__main__":
    sys.exit(main())
