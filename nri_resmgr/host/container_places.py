"""Where the cgroups of containers are: out of OCI paths, or of a process' own word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from nri_resmgr.host.platform import CGROUP_ROOT, read_cgroup_layout
from nri_resmgr.host.tree import Tree
from nri_resmgr.topology import CgroupLayout

# crun makes one below the scope that systemd gives it, and leaves the scope alone.
_BELOW: Final = "container"

# Where systemd puts what names no slice, and how it writes the one above all.
_DEFAULT_SLICE: Final = "system.slice"
_ROOT_SLICES: Final = ("-.slice", "-")

_SLICE: Final = ".slice"
_PARTS: Final = 3  # of slice:prefix:name

# Version 1 mounts both together under either name, and not all make links.
_CPU_ROOTS: Final = ("cpu", "cpu,cpuacct", "cpuacct,cpu")


class Place(msgspec.Struct, frozen=True):
    """The folders of one container's cgroup.

    Attributes:
        scope: What the runtime calls its cgroup.
        cpuset: Where its CPUs and memory nodes are: the scope, or below.
        cpu: Where its weight is.
        cpu_scope: What that is below of, or the same.
        top: Above all cgroups with CPUs.
    """

    scope: str
    cpuset: str
    cpu: str
    cpu_scope: str
    top: str


def cgroup_of_oci(path: str) -> str:
    """Turn a cgroups path of the OCI spec into a path below the mount.

    Returns:
        Without a slash at its ends; empty where it means nothing.

    Source:
        runc, docs/systemd.md: ``slice:prefix:name`` with the systemd driver, a path
        with the other. systemd.slice(5): a dash in a slice's name is a level.

    >>> cgroup_of_oci("kubepods-burstable-pod1.slice:cri-containerd:c1")
    'kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-c1.scope'
    >>> cgroup_of_oci("/kubepods/burstable/pod1/c1")
    'kubepods/burstable/pod1/c1'
    """
    if "\0" in path:
        return ""
    parts = path.split(":")
    if len(parts) == _PARTS and "/" not in path:
        slice_name, prefix, name = parts
        if not name:
            return ""
        unit = name if name.endswith(_SLICE) else f"{prefix}-{name}.scope"
        return "/".join((*_slices(slice_name or _DEFAULT_SLICE), unit))
    steps = [step for step in path.split("/") if step not in ("", ".")]
    return "" if ".." in steps else "/".join(steps)


def _slices(name: str) -> Iterator[str]:
    if name in _ROOT_SLICES:
        return
    so_far = ""
    for word in name.removesuffix(_SLICE).split("-"):
        so_far = f"{so_far}-{word}" if so_far else word
        yield f"{so_far}{_SLICE}"


def cgroups_of_process(text: str, container: str) -> Iterator[str]:
    """Find a container's cgroup in what the kernel says of one of its processes.

    A process id may be another process' by now: only a path that names the container
    is taken. What stands before it may be above what is mounted, so each shorter path
    is tried as well.

    Args:
        text: Of ``/proc/PID/cgroup``.
        container: Its id.

    Source:
        cgroups(7), "/proc/[pid]/cgroup"; cgroup_namespaces(7) for "/..".
    """
    tried: dict[str, None] = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "cpuset" not in controllers.split(","):
            continue
        steps = [step for step in path.split("/") if step not in ("", "..")]
        named = [at for at, step in enumerate(steps) if container in step]
        if named:
            whole = steps[: named[0] + 1]
            tried |= dict.fromkeys("/".join(whole[at:]) for at in range(len(whole)))
    yield from tried


class Places:
    """Finds the folders of containers on a host.

    Attributes:
        is_v2: Whether its cgroups are of version 2.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.is_v2 = read_cgroup_layout(tree) is CgroupLayout.V2
        self._top = CGROUP_ROOT if self.is_v2 else f"{CGROUP_ROOT}/cpuset"
        self._cpu_top = self._top if self.is_v2 else self._cpu_root()

    def find(self, container: str, path: str, pid: int) -> Place | None:
        """Find a container's cgroup; None where it has none.

        Args:
            container: Its id.
            path: As in its OCI spec; may be empty.
            pid: Of its first process; 0 if untold.

        Raises:
            UnreadableHostFile: A file is there and cannot be read.
        """
        for one in self._candidates(container, path, pid):
            if self._is_cgroup(f"{self._top}/{one}"):
                return self._place(one)
        return None

    def _candidates(self, container: str, path: str, pid: int) -> Iterator[str]:
        if inside := cgroup_of_oci(path):
            yield inside
        if pid and container:
            told = self._tree.read(f"/proc/{pid}/cgroup") or ""
            yield from cgroups_of_process(told, container)

    def _place(self, inside: str) -> Place:
        scope, cpu = f"{self._top}/{inside}", f"{self._cpu_top}/{inside}"
        below = f"/{_BELOW}" if self._is_cgroup(f"{scope}/{_BELOW}") else ""
        return Place(scope, f"{scope}{below}", f"{cpu}{below}", cpu, self._top)

    def _is_cgroup(self, folder: str) -> bool:
        return self._tree.read(f"{folder}/cgroup.procs") is not None

    def _cpu_root(self) -> str:
        roots = [f"{CGROUP_ROOT}/{name}" for name in _CPU_ROOTS]
        return next((one for one in roots if self._is_cgroup(one)), roots[0])
