"""Makes /sys/fs/cgroup of containers writable by annotations of their pods."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
import structlog

from nri_resmgr.host.bounded import KERNEL_FILE, read_lines, reason
from nri_resmgr.sdk.settings import Settings
from nri_resmgr.stub import (
    Configuration,
    ConfigureHandler,
    Container,
    ContainerAdjustment,
    CreateContainerHandler,
    Mount,
    Pod,
    RequestRejected,
    serve,
)

log = structlog.get_logger(__name__)

KEY: Final = "cgroups.noderesource.dev/writable"
CGROUPS: Final = "/sys/fs/cgroup"


class CgroupSettings(Settings, frozen=True):
    """The keys of the configuration document with their defaults."""

    host_mount_file: str = "/proc/1/mountinfo"


def is_delegated(mounts: Path) -> bool:
    """Return whether the host has cgroup2 only, mounted with ``nsdelegate``.

    With it the kernel refuses writes to files of the container's own cgroup, such as
    memory.max; without it a writable mount would lift all limits. Where cgroup2 is
    mounted elsewhere, containers have hierarchies of version 1, which nothing guards.

    Source:
        cgroups(7), "Cgroups v2 delegation: nsdelegate"; proc_pid_mountinfo(5).

    Raises:
        OSError: The table cannot be read.
    """
    for line in read_lines(mounts, KERNEL_FILE):
        mount, _, file_system = line.partition(" - ")
        point = mount.split()[4:5]
        kind, *rest = file_system.split() or [""]
        if kind == "cgroup2" and point == [CGROUPS]:
            return "nsdelegate" in (rest or [""])[-1].split(",")
    return False


class WritableCgroups(ConfigureHandler, CreateContainerHandler):
    """The plugin."""

    def __init__(self) -> None:
        self._is_safe = False

    def configure(self, configuration: Configuration) -> None:
        """Look how the host has mounted cgroup2; called once in each session."""
        path = CgroupSettings.read(configuration.text).host_mount_file
        self._is_safe, why = False, "no cgroup2 with nsdelegate at /sys/fs/cgroup"
        try:
            self._is_safe = is_delegated(Path(path))
        except OSError as error:
            why = reason(error)
        if not self._is_safe:
            log.warning("cgroups.not-delegated", file=path, why=why)

    def create_container(
        self, pod: Pod, container: Container
    ) -> ContainerAdjustment | None:
        """Return a writable mount if the pod asks for it and the host is safe."""
        own = pod.annotations.get(f"{KEY}.container.{container.name}")
        asked = pod.annotations.get(KEY) if own is None else own
        if asked != "true":
            return None
        if not self._is_safe:
            what = f"{pod.namespace}/{pod.name}/{container.name}"
            log.warning("cgroups.left-read-only", container=what)
            return None
        for mount in container.mounts:
            if mount.destination == CGROUPS:
                return _as_writable(mount)
        raise RequestRejected(f"annotation {KEY}: {container.name} has no {CGROUPS}")


def _as_writable(mount: Mount) -> ContainerAdjustment | None:
    options = tuple(one for one in mount.options if one not in ("ro", "rw"))
    if "rw" in mount.options and "ro" not in mount.options:
        return None
    changed = msgspec.structs.replace(mount, options=(*options, "rw"))
    return ContainerAdjustment().replace_mount(changed)


if __name__ == "__main__":
    serve(WritableCgroups(), index="10")
