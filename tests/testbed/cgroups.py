"""One path in the cgroup tree, whichever version the kernel mounts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs

_MOUNT = Path("/sys/fs/cgroup")


@attrs.frozen
class Cgroup:
    """A cgroup as the runtime names it: ``/kubepods/burstable/podUID/ID``."""

    path: str

    def read(self, file: str) -> str:
        """Content of a control file such as ``cpuset.cpus``.

        Under version 1 the controller's hierarchy is told by the file's prefix.

        Source:
            cgroups(7), "Cgroups version 1" and "version 2".
        """
        if (_MOUNT / "cgroup.controllers").exists():
            top = _MOUNT
        else:
            top = _MOUNT / file.partition(".")[0]
        return (top / self.path.lstrip("/") / file).read_text().strip()

    def folders(self) -> Iterator[Path]:
        """Its folder in the unified hierarchy, or in each controller's."""
        name = self.path.lstrip("/")
        yield from _MOUNT.glob(name)
        yield from _MOUNT.glob(f"*/{name}")
