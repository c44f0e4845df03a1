"""Cgroups of a node under faults, in files that its runtime writes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from nri_proto import nri_pb2
from nri_resmgr.host.cgroups.finder import cgroup_of_oci
from nri_resmgr.host.cgroups.top_tier import TOP_TIER_FILE
from nri_resmgr.testing.world import World
from tests.app.class_rig import files_of
from tests.faults.node_pods import ADJUSTED, PROBE, RESIDENTS, VISITOR, cgroups_path

_CGROUPS: Final = "sys/fs/cgroup"

Pins = Mapping[str, tuple[str, str]]


class UpdatedWorld(World):
    """The pods and containers of the runtime, with those that were updated."""

    def __init__(self) -> None:
        super().__init__()
        self.updated: set[str] = set()

    def update(
        self, container_id: str, changes: nri_pb2.LinuxResources, *, all_fields: bool
    ) -> None:
        """See `World.update`."""
        super().update(container_id, changes, all_fields=all_fields)
        self.updated.add(container_id)


class NodeCgroups:
    """Cgroups of version 2 on a host of files; what is written is in force.

    Args:
        host: Its root.
        world: The runtime's containers.
    """

    def __init__(self, host: Path, world: UpdatedWorld) -> None:
        self._top = host / _CGROUPS
        self._world = world
        self._recorded: dict[str, tuple[str, str, int, int]] = {}
        top = {"cgroup.controllers": "cpuset cpu io memory\n", "cgroup.procs": "1\n"}
        files_of(self._top, top)

    def pins(self) -> Pins:
        """Return CPUs and memory nodes that containers have in their cgroups."""
        self.write()
        return {
            name: (
                _first_line(folder / "cpuset.cpus"),
                _first_line(folder / "cpuset.mems"),
            )
            for name in self._world.containers
            if (folder := self._cgroup_of(name)).exists()
        }

    def write(self) -> None:
        """Do as the runtime: write what its record has got since it wrote last.

        An update is written also if its values are those of the record: the daemon may
        have written others meanwhile, and then have failed to write.
        """
        updated = set(self._world.updated)
        self._world.updated.clear()
        for name, one in self._world.containers.items():
            folder = self._cgroup_of(name)
            cpu = one.linux.resources.cpu
            recorded = (cpu.cpus, cpu.mems, cpu.shares.value, cpu.quota.value)
            is_same = self._recorded.get(name) == recorded and name not in updated
            if folder.exists() and is_same:
                continue
            self._recorded[name] = recorded
            weight = 1 + ((cpu.shares.value - 2) * 9999) // 262142
            number = sum(name.encode())
            files = {
                "cgroup.procs": f"{number}\n",
                "cgroup.threads": f"{number}\n",
                "cgroup.events": "populated 1\nfrozen 0\n",
                "cpuset.cpus": f"{cpu.cpus or '0-7'}\n",
                "cpuset.mems": f"{cpu.mems or '0-1'}\n",
                "cpu.weight": f"{max(weight, 1)}\n",
                "cpu.max": f"{cpu.quota.value or 'max'} 100000\n",
            }
            if not folder.exists():
                files |= {"io.stat": "", "io.weight": "default 100\n"}
                files |= {TOP_TIER_FILE: "-1\n"}
            for file, text in files.items():
                _replace(folder / file, text)
            # What is written is in force, as in the kernel.
            for file in ("cpuset.cpus", "cpuset.mems"):
                effective = folder / f"{file}.effective"
                if not effective.is_symlink():
                    effective.symlink_to(file)
        known = {one.id for one in self._world.containers.values()}
        for gone in (*RESIDENTS, VISITOR, PROBE):
            folder = self._cgroup(cgroups_path(gone))
            if gone.name not in known and folder.exists():
                for each in folder.iterdir():
                    each.unlink()
                folder.rmdir()

    def limits(self) -> Mapping[str, str]:
        """Return the limits of fast memory that containers have, in bytes."""
        return {
            name: _first_line(self._cgroup_of(name) / TOP_TIER_FILE)
            for name in self._world.containers
        }

    def weights(self) -> Mapping[str, str]:
        """Return the weights of block I/O that containers have."""
        return {
            name: _first_line(self._cgroup_of(name) / "io.weight")
            for name in self._world.containers
        }

    def quota(self) -> str:
        """Return the line of ``cpu.max`` that the adjusted container has."""
        return _first_line(self._cgroup_of(ADJUSTED) / "cpu.max")

    def _cgroup_of(self, name: str) -> Path:
        return self._cgroup(self._world.containers[name].linux.cgroups_path)

    def _cgroup(self, path: str) -> Path:
        return self._top / cgroup_of_oci(path)


def _first_line(path: Path) -> str:
    """Read a value. The daemon writes as to the kernel, and a longer one had more."""
    return path.read_text().partition("\n")[0]


def _replace(path: Path, text: str) -> None:
    with suppress(FileNotFoundError):
        if path.read_text() == text:
            return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
