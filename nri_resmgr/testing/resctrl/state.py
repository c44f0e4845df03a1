"""What the kernel remembers of groups, and its rules for changing it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Final

import attrs

from nri_resmgr.testing.resctrl.hardware import Hardware
from nri_resmgr.testing.resctrl.lines import Refused, is_valid_mask, read_lines

SHAREABLE: Final = "shareable"
EXCLUSIVE: Final = "exclusive"
LOCKED: Final = "pseudo-locked"  # gives its closid back; a test sets it by hand

# A group, and a monitoring group in it or nothing; the root group's name is empty.
Place = tuple[str, str]
ROOT: Final[Place] = ("", "")

Values = dict[str, dict[int, int]]


@attrs.define(eq=False)
class Group:
    """One control group.

    Attributes:
        values: Masks and bandwidths, by resource and id.
        mode: How it shares them.
        cpus: Its list of CPUs.
        monitors: Names of its monitoring groups.
    """

    values: Values
    mode: str = SHAREABLE
    cpus: str = ""
    monitors: set[str] = attrs.field(factory=set)


class State:
    """All groups, and which thread is in which.

    Attributes:
        groups: By name.
        threads: Where each living thread is.
        counts: What counters say, by place, cache and event.
        draining: Whether freed RMIDs are still in use by what is in the caches.
    """

    def __init__(self, hardware: Hardware) -> None:
        self.hardware = hardware
        self.groups = {"": Group(self._all())}
        self.threads: dict[int, Place] = {}
        self.counts: dict[tuple[Place, int, str], int | str] = {}
        self.draining = False

    def make_group(self, name: str) -> None:
        """Source: Linux fs/resctrl/rdtgroup.c: rdtgroup_mkdir_ctrl_mon."""
        held = [group for group in self.groups.values() if group.mode != LOCKED]
        if len(held) >= self.hardware.closids:
            raise Refused(errno.ENOSPC, "Out of CLOSIDs")
        self._take_rmid()
        self.groups[name] = Group(self._initial())

    def make_monitor(self, group: str, name: str) -> None:
        """Source: Linux fs/resctrl/rdtgroup.c: rdtgroup_mkdir_mon."""
        if not self.hardware.rmids:
            raise Refused(errno.EPERM)
        self._take_rmid()
        self.groups[group].monitors.add(name)

    def remove_group(self, name: str) -> None:
        """Give its threads to the root group."""
        del self.groups[name]
        self._forget({place for place in self._places() if place[0] == name}, ROOT)

    def remove_monitor(self, group: str, name: str) -> None:
        """Give its threads to its control group."""
        self.groups[group].monitors.remove(name)
        self._forget({(group, name)}, (group, ""))

    def set_schemata(self, name: str, text: str) -> None:
        """Change what a group has, all of it or nothing."""
        group = self.groups[name]
        if group.mode not in {SHAREABLE, EXCLUSIVE}:
            raise Refused(errno.EINVAL, "Resource group is pseudo-locked")
        staged: Values = {}
        for resource, values in read_lines(text, self.hardware):
            old = staged.setdefault(resource, {})
            if twice := old.keys() & values.keys():
                raise Refused(errno.EINVAL, f"Duplicate domain {min(twice)}")
            self._check_overlap(name, resource, values)
            old.update(values)
        for resource, values in staged.items():
            group.values[resource].update(values)

    def set_mode(self, name: str, mode: str) -> None:
        """Change how a group shares."""
        group = self.groups[name]
        if mode == EXCLUSIVE:
            for resource, masks in group.values.items():
                for _, theirs in self._others(name, resource):
                    if _meet(masks, theirs):
                        raise Refused(errno.EINVAL, "Schemata overlaps")
        elif mode not in {SHAREABLE, "pseudo-locksetup"}:
            raise Refused(errno.EINVAL, "Unknown or unsupported mode")
        group.mode = mode

    def move(self, place: Place, text: str) -> None:
        """Put one thread into a group, or several, as newer kernels take them."""
        for word in text.strip().split(","):
            if not word.lstrip("-").isdigit():
                raise Refused(errno.EINVAL, f"Task list parsing error pid {word}")
            task = int(word)
            if task < 0:
                raise Refused(errno.EINVAL, f"Invalid pid {task}")
            if task not in self.threads:
                raise Refused(errno.ESRCH, f"No task {task}")
            if place[1] and self.threads[task][0] != place[0]:
                raise Refused(
                    errno.EINVAL, "Can't move task to different control group"
                )
            self.threads[task] = place

    def members(self, place: Place) -> list[int]:
        """Return the threads of a group; a control group's are in its monitors, too."""
        group, monitor = place
        return sorted(
            task
            for task, at in self.threads.items()
            if at == place or (not monitor and at[0] == group)
        )

    def count(self, place: Place, cache: int, event: str) -> int | str:
        """Return what a counter says: a control group's is the sum of all in it."""
        own = self.counts.get((place, cache, event), 0)
        if place[1] or isinstance(own, str):
            return own
        monitors = self.groups[place[0]].monitors
        found = [self.counts.get(((place[0], m), cache, event), 0) for m in monitors]
        return own + sum(one for one in found if isinstance(one, int))

    def _places(self) -> set[Place]:
        counted = {place for place, _, _ in self.counts}
        return {*self.threads.values(), *counted}

    def _forget(self, gone: set[Place], to: Place) -> None:
        for task, place in self.threads.items():
            if place in gone:
                self.threads[task] = to
        self.counts = {k: v for k, v in self.counts.items() if k[0] not in gone}

    def _take_rmid(self) -> None:
        used = sum(1 + len(group.monitors) for group in self.groups.values())
        if self.hardware.rmids and used >= self.hardware.rmids:
            number = errno.EBUSY if self.draining else errno.ENOSPC
            raise Refused(number, "Out of RMIDs")

    def _all(self) -> Values:
        hardware = self.hardware
        values = {
            name: dict.fromkeys(ways.ids, ways.mask)
            for name, ways in hardware.caches.items()
        }
        if hardware.throttle is not None:
            limit = hardware.default_bandwidth
            values["MB"] = dict.fromkeys(hardware.domains, limit)
        return values

    def _initial(self) -> Values:
        """Give a new group all bits that others share, or do not have.

        Source:
            Linux fs/resctrl/rdtgroup.c: __init_one_rdt_domain.
        """
        values = self._all()
        for name, ways in self.hardware.caches.items():
            for cache in ways.ids:
                alone = 0
                for group, theirs in self._others(None, name):
                    if group.mode != SHAREABLE:
                        alone |= theirs.get(cache, 0)
                mask = _first_run(ways.mask & ~alone)
                if not mask or not is_valid_mask(mask, ways):
                    raise Refused(errno.ENOSPC, f"No space on {name}:{cache}")
                values[name][cache] = mask
        return values

    def _check_overlap(self, name: str, resource: str, values: dict[int, int]) -> None:
        mine = self.groups[name].mode
        for group, theirs in self._others(name, resource):
            if group.mode == LOCKED and _meet(values, theirs):
                status = "CBM overlaps with pseudo-locked region"
                raise Refused(errno.EINVAL, status)
            if EXCLUSIVE in {mine, group.mode} and _meet(values, theirs):
                whose = "exclusive" if group.mode == EXCLUSIVE else "other"
                raise Refused(errno.EINVAL, f"Overlaps with {whose} group")

    def _others(
        self, name: str | None, resource: str
    ) -> Iterator[tuple[Group, dict[int, int]]]:
        """Yield other groups with their masks of a cache, code and data alike."""
        if resource in self.hardware.caches:
            for other, group in self.groups.items():
                for theirs, masks in group.values.items():
                    if other != name and theirs[:2] == resource[:2]:
                        yield group, masks


def _meet(masks: dict[int, int], others: dict[int, int]) -> bool:
    return any(masks[key] & others[key] for key in masks.keys() & others.keys())


def _first_run(mask: int) -> int:
    lowest = mask & -mask
    return mask & ~(mask + lowest) if mask else 0
