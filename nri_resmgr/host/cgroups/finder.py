"""Finds cgroups of containers, by their OCI path or ``/proc/PID/cgroup``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from nri_resmgr.host.cgroups.layout import CGROUP_ROOT, read_cgroup_layout
from nri_resmgr.host.tree import Tree
from nri_resmgr.topology import CgroupLayout

# crun creates this cgroup below its systemd scope, and sets resources there.
_BELOW: Final = "container"

# systemd's default slice, and its names of the root slice.
_DEFAULT_SLICE: Final = "system.slice"
_ROOT_SLICES: Final = ("-.slice", "-")

_SLICE: Final = ".slice"
_PARTS: Final = 3  # of slice:prefix:name

# v1 mounts both controllers together under either name, and links are optional.
_CPU_ROOTS: Final = ("cpu", "cpu,cpuacct", "cpuacct,cpu")


class CgroupFolders(msgspec.Struct, frozen=True):
    """The folders of one container's cgroup.

    Attributes:
        scope: The cgroup that the runtime created.
        cpuset: Has its CPUs and memory nodes: the scope, or a cgroup below it.
        cpu: Has its weight.
        cpu_scope: The scope of *cpu*, on v1 in another hierarchy.
    """

    scope: str
    cpuset: str
    cpu: str
    cpu_scope: str
    top: str


def cgroup_of_oci(path: str) -> str:
    """Convert a cgroups path of the OCI spec into a path below the mount point.

    Returns:
        A path without leading or trailing slash; empty for an invalid one.

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
        unit = unit_of_oci(path)
        return "/".join((*_slices(parts[0] or _DEFAULT_SLICE), unit)) if unit else ""
    steps = [step for step in path.split("/") if step not in ("", ".")]
    return "" if ".." in steps else "/".join(steps)


def unit_of_oci(path: str) -> str:
    """Return the systemd unit of a cgroups path of the OCI spec; empty for none.

    Source:
        See `cgroup_of_oci`.

    >>> unit_of_oci("kubepods-burstable-pod1.slice:cri-containerd:c1")
    'cri-containerd-c1.scope'
    >>> unit_of_oci("/kubepods/burstable/pod1/c1")
    ''
    """
    parts = path.split(":")
    if len(parts) != _PARTS or "/" in path or "\0" in path or not parts[2]:
        return ""
    _, prefix, name = parts
    return name if name.endswith(_SLICE) else f"{prefix}-{name}.scope"


def _slices(name: str) -> Iterator[str]:
    if name in _ROOT_SLICES:
        return
    so_far = ""
    for word in name.removesuffix(_SLICE).split("-"):
        so_far = f"{so_far}-{word}" if so_far else word
        yield f"{so_far}{_SLICE}"


def cgroups_of_process(text: str, container: str) -> Iterator[str]:
    """Yield possible paths of a container's cgroup from the cgroups of its process.

    The process id may have been reused, so only paths with the container's id are
    returned. Leading folders may be above the mounted cgroup namespace, so each shorter
    path is yielded as well.

    *text* is the content of ``/proc/PID/cgroup``.

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


class CgroupFinder:
    """Finds the cgroup folders of containers."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.is_v2 = read_cgroup_layout(tree) is CgroupLayout.V2
        self._top = CGROUP_ROOT if self.is_v2 else f"{CGROUP_ROOT}/cpuset"
        self._cpu_top = self._top if self.is_v2 else self._cpu_root()

    def find(self, container: str, path: str, pid: int) -> CgroupFolders | None:
        """Find a container's cgroup; None if it has none.

        *path* is that of its OCI spec and may be empty; *pid* is 0 if unknown.

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
            text = self._tree.read(f"/proc/{pid}/cgroup") or ""
            yield from cgroups_of_process(text, container)

    def _place(self, inside: str) -> CgroupFolders:
        scope, cpu = f"{self._top}/{inside}", f"{self._cpu_top}/{inside}"
        below = f"/{_BELOW}" if self._is_cgroup(f"{scope}/{_BELOW}") else ""
        return CgroupFolders(scope, f"{scope}{below}", f"{cpu}{below}", cpu, self._top)

    def _is_cgroup(self, folder: str) -> bool:
        return self._tree.read(f"{folder}/cgroup.procs") is not None

    def _cpu_root(self) -> str:
        roots = [f"{CGROUP_ROOT}/{name}" for name in _CPU_ROOTS]
        return next((one for one in roots if self._is_cgroup(one)), roots[0])
