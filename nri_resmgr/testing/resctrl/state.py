"""Groups and threads of the simulated kernel, with its rules for changes."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from nri_resmgr.testing.resctrl.hardware import Hardware
from nri_resmgr.testing.resctrl.lines import KernelRefusal, is_valid_mask, read_lines

SHAREABLE: Final = "shareable"
EXCLUSIVE: Final = "exclusive"
LOCKED: Final = "pseudo-locked"  # frees its closid; tests set it directly

# Names of a group, empty for the root group, and of a monitoring group in it, or empty.
GroupKey = tuple[str, str]
ROOT: Final[GroupKey] = ("", "")

Values = dict[str, dict[int, int]]


@attrs.define(eq=False)
class SimulatedGroup:
    """One control group.

    Attributes:
        values: Masks and bandwidths, by resource and id.
        mode: Text of its ``mode`` file.
        cpus: Its list of CPUs.
        monitors: Names of its monitoring groups.
    """

    values: Values
    mode: str = SHAREABLE
    cpus: str = ""
    monitors: set[str] = attrs.field(factory=set)


class State:
    """All groups and threads.

    Attributes:
        groups: Groups by name.
        threads: Group of each thread.
        counts: Values of counters, by group, cache and event.
        draining: Whether freed RMIDs are still used by cache contents.
    """

    def __init__(self, hardware: Hardware) -> None:
        self.hardware = hardware
        self.groups = {"": SimulatedGroup(self._all())}
        self.threads: dict[int, GroupKey] = {}
        self.counts: dict[tuple[GroupKey, int, str], int | str] = {}
        self.draining = False

    def make_group(self, name: str) -> None:
        """Create a control group.

        Raises:
            KernelRefusal: There is no closid or no RMID left.

        Source:
            Linux fs/resctrl/rdtgroup.c: rdtgroup_mkdir_ctrl_mon.
        """
        held = [group for group in self.groups.values() if group.mode != LOCKED]
        if len(held) >= self.hardware.closids:
            raise KernelRefusal(errno.ENOSPC, "Out of CLOSIDs")
        self._take_rmid()
        self.groups[name] = SimulatedGroup(self._initial())

    def make_monitor(self, group: str, name: str) -> None:
        """Create a monitoring group.

        Raises:
            KernelRefusal: There are no counters, or no RMID is left.

        Source:
            Linux fs/resctrl/rdtgroup.c: rdtgroup_mkdir_mon.
        """
        if not self.hardware.rmids:
            raise KernelRefusal(errno.EPERM)
        self._take_rmid()
        self.groups[group].monitors.add(name)

    def remove_group(self, name: str) -> None:
        """Remove a group; its threads move to the root group."""
        del self.groups[name]
        self._move_all(lambda place: place[0] == name, ROOT)

    def remove_monitor(self, group: str, name: str) -> None:
        """Remove a monitoring group; its threads move to its control group."""
        self.groups[group].monitors.remove(name)
        self._move_all(lambda place: place == (group, name), (group, ""))

    def set_schemata(self, name: str, text: str) -> None:
        """Change the schemata of a group by all lines, or none."""
        group = self.groups[name]
        if group.mode not in {SHAREABLE, EXCLUSIVE}:
            raise KernelRefusal(errno.EINVAL, "Resource group is pseudo-locked")
        staged: Values = {}
        for resource, values in read_lines(text, self.hardware):
            old = staged.setdefault(resource, {})
            if twice := old.keys() & values.keys():
                raise KernelRefusal(errno.EINVAL, f"Duplicate domain {min(twice)}")
            self._check_overlap(name, resource, values)
            old.update(values)
        for resource, values in staged.items():
            group.values[resource].update(values)

    def set_mode(self, name: str, mode: str) -> None:
        """Change the mode of a group."""
        group = self.groups[name]
        if mode == EXCLUSIVE:
            for resource, masks in group.values.items():
                for _, theirs in self._others(name, resource):
                    if _overlap(masks, theirs):
                        raise KernelRefusal(errno.EINVAL, "Schemata overlaps")
        elif mode not in {SHAREABLE, "pseudo-locksetup"}:
            raise KernelRefusal(errno.EINVAL, "Unknown or unsupported mode")
        group.mode = mode

    def move(self, place: GroupKey, text: str) -> None:
        """Move a thread to a group, or several, as newer kernels accept."""
        for word in text.strip().split(","):
            if not word.lstrip("-").isdigit():
                raise KernelRefusal(errno.EINVAL, f"Task list parsing error pid {word}")
            task = int(word)
            if task < 0:
                raise KernelRefusal(errno.EINVAL, f"Invalid pid {task}")
            if task not in self.threads:
                raise KernelRefusal(errno.ESRCH, f"No task {task}")
            if place[1] and self.threads[task][0] != place[0]:
                raise KernelRefusal(
                    errno.EINVAL, "Can't move task to different control group"
                )
            self.threads[task] = place

    def members(self, place: GroupKey) -> list[int]:
        """Return the threads of a group, including those of its monitoring groups."""
        group, monitor = place
        return sorted(
            task
            for task, at in self.threads.items()
            if at == place or (not monitor and at[0] == group)
        )

    def count(self, place: GroupKey, cache: int, event: str) -> int | str:
        """Return a counter; that of a control group includes its monitoring groups."""
        own = self.counts.get((place, cache, event), 0)
        if place[1] or isinstance(own, str):
            return own
        monitors = self.groups[place[0]].monitors
        found = [self.counts.get(((place[0], m), cache, event), 0) for m in monitors]
        return own + sum(one for one in found if isinstance(one, int))

    def _move_all(self, is_gone: Callable[[GroupKey], bool], to: GroupKey) -> None:
        for task, place in self.threads.items():
            if is_gone(place):
                self.threads[task] = to
        self.counts = {k: v for k, v in self.counts.items() if not is_gone(k[0])}

    def _take_rmid(self) -> None:
        used = sum(1 + len(group.monitors) for group in self.groups.values())
        if self.hardware.rmids and used >= self.hardware.rmids:
            number = errno.EBUSY if self.draining else errno.ENOSPC
            raise KernelRefusal(number, "Out of RMIDs")

    def _all(self) -> Values:
        hardware = self.hardware
        values = {
            name: dict.fromkeys(ways.ids, ways.mask)
            for name, ways in hardware.caches.items()
        }
        if hardware.throttle is not None:
            values["MB"] = dict.fromkeys(hardware.domains, hardware.default_bandwidth)
        return values

    def _initial(self) -> Values:
        """Return the values of a new group: all bits that are not exclusive.

        Source:
            Linux fs/resctrl/rdtgroup.c: __init_one_rdt_domain.
        """
        values = self._all()
        for name, ways in self.hardware.caches.items():
            for cache in ways.ids:
                exclusive = 0
                for group, theirs in self._others(None, name):
                    if group.mode != SHAREABLE:
                        exclusive |= theirs.get(cache, 0)
                mask = _first_run(ways.mask & ~exclusive)
                if not mask or not is_valid_mask(mask, ways):
                    raise KernelRefusal(errno.ENOSPC, f"No space on {name}:{cache}")
                values[name][cache] = mask
        return values

    def _check_overlap(self, name: str, resource: str, values: dict[int, int]) -> None:
        mine = self.groups[name].mode
        for group, theirs in self._others(name, resource):
            if group.mode == LOCKED and _overlap(values, theirs):
                status = "CBM overlaps with pseudo-locked region"
                raise KernelRefusal(errno.EINVAL, status)
            if EXCLUSIVE in {mine, group.mode} and _overlap(values, theirs):
                kind = "exclusive" if group.mode == EXCLUSIVE else "other"
                raise KernelRefusal(errno.EINVAL, f"Overlaps with {kind} group")

    def _others(
        self, name: str | None, resource: str
    ) -> Iterator[tuple[SimulatedGroup, dict[int, int]]]:
        """Yield other groups with their masks of a cache, both for code and data."""
        if resource in self.hardware.caches:
            for other, group in self.groups.items():
                for theirs, masks in group.values.items():
                    if other != name and theirs[:2] == resource[:2]:
                        yield group, masks


def _overlap(masks: dict[int, int], others: dict[int, int]) -> bool:
    return any(masks[key] & others[key] for key in masks.keys() & others.keys())


def _first_run(mask: int) -> int:
    lowest = mask & -mask
    return mask & ~(mask + lowest) if mask else 0
