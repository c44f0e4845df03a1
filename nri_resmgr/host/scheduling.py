"""Sets the Linux scheduler and I/O priority of all threads of a container."""

from __future__ import annotations

import errno
import os
import platform
import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Final

from nri_resmgr.host.cgroups.threads import threads_of
from nri_resmgr.host.libc import call
from nri_resmgr.host.tree import Tree
from nri_resmgr.values import HostError
from nri_resmgr.values.scheduling import (
    IoClass,
    SchedulingClass,
    SchedulingFlag,
    SchedulingPolicy,
)

# System call numbers of sched_setattr(2) and ioprio_set(2): not every C library has
# wrappers.
_NUMBERS: Final = {
    "x86_64": (314, 251),
    "aarch64": (274, 30),
    "riscv64": (274, 30),
    "loongarch64": (274, 30),
    "ppc64le": (355, 273),
    "s390x": (345, 282),
}

# include/uapi/linux/sched.h and ioprio.h
_POLICIES: Final = {
    SchedulingPolicy.OTHER: 0,
    SchedulingPolicy.FIFO: 1,
    SchedulingPolicy.RR: 2,
    SchedulingPolicy.BATCH: 3,
    SchedulingPolicy.ISO: 4,
    SchedulingPolicy.IDLE: 5,
    SchedulingPolicy.DEADLINE: 6,
}
_FLAGS: Final = {
    SchedulingFlag.RESET_ON_FORK: 0x01,
    SchedulingFlag.RECLAIM: 0x02,
    SchedulingFlag.DL_OVERRUN: 0x04,
    SchedulingFlag.KEEP_POLICY: 0x08,
    SchedulingFlag.KEEP_PARAMS: 0x10,
    SchedulingFlag.UTIL_CLAMP_MIN: 0x20,
    SchedulingFlag.UTIL_CLAMP_MAX: 0x40,
}
_IO_CLASSES: Final = {IoClass.RT: 1, IoClass.BEST_EFFORT: 2, IoClass.IDLE: 3}
_IO_CLASS_SHIFT: Final = 13
_WHO_PROCESS: Final = 1

# struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period,
# and the two utilization clamps, which classes do not set.
_ATTR: Final = struct.Struct("=IIQiIQQQII")

# A thread inherits its creator's scheduler, so each pass finds only threads that were
# created by threads which the pass before had not reached.
_PASSES: Final = 64


@dataclass(eq=False)
class SchedulingRefused(HostError):
    """The kernel rejected a scheduling class.

    Attributes:
        what: ``scheduler`` or ``I/O priority``.
    """

    name: str
    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what} of scheduling class {self.name!r}: {self.why}"


def set_scheduler(tree: Tree, folder: str, scheduling: SchedulingClass) -> int:
    """Set the scheduler of all threads of a cgroup; return their number.

    The processes of the host must be visible here.

    SCHED_DEADLINE is set on the first thread of each process only: the kernel reserves
    CPU time for each thread of it, and runtimes set it on one thread as well.

    Raises:
        SchedulingRefused: The kernel rejected it.
        HostError: The threads cannot be read.
    """
    if scheduling.policy is None:
        return 0
    attr = _attr_of(scheduling.policy, scheduling)

    def set_one(thread: int) -> None:
        _call(0, thread, attr, 0)

    def threads() -> Collection[int]:
        found = threads_of(tree, folder)
        if scheduling.policy is SchedulingPolicy.DEADLINE:
            processes = tree.read(f"{folder}/cgroup.procs") or ""
            return found & frozenset(map(int, processes.split()))
        return found

    return _for_all(threads, set_one, scheduling.name, "scheduler")


def set_io_priority(tree: Tree, folder: str, scheduling: SchedulingClass) -> int:
    """Set the I/O priority of all threads of a cgroup; see `set_scheduler`."""
    if scheduling.io_class is None:
        return 0
    value = _IO_CLASSES[scheduling.io_class] << _IO_CLASS_SHIFT
    return _set_io(tree, folder, value | scheduling.io_priority, scheduling.name)


def forget_io_priority(tree: Tree, folder: str, scheduling: SchedulingClass) -> None:
    """Reset the I/O priority that `set_io_priority` has set."""
    if scheduling.io_class is not None:
        _set_io(tree, folder, 0, scheduling.name)


def _set_io(tree: Tree, folder: str, value: int, name: str) -> int:
    def set_one(thread: int) -> None:
        _call(1, _WHO_PROCESS, thread, value)

    return _for_all(partial(threads_of, tree, folder), set_one, name, "I/O priority")


def _attr_of(policy: SchedulingPolicy, scheduling: SchedulingClass) -> bytes:
    return _ATTR.pack(
        _ATTR.size,
        _POLICIES[policy],
        sum(_FLAGS[flag] for flag in scheduling.flags),
        scheduling.nice,
        scheduling.priority,
        scheduling.runtime,
        scheduling.deadline,
        scheduling.period,
        0,
        0,
    )


def _for_all(
    threads: Callable[[], Collection[int]],
    set_one: Callable[[int], None],
    name: str,
    what: str,
) -> int:
    done: set[int] = set()
    for _ in range(_PASSES):
        new = set(threads()) - done
        if not new:
            return len(done)
        for thread in sorted(new):
            try:
                set_one(thread)
            except OSError as error:
                if error.errno != errno.ESRCH:  # the thread has ended
                    raise SchedulingRefused(name, what, _sentence(error)) from None
        done |= new
    raise SchedulingRefused(
        name, what, f"new threads still appear after {_PASSES} passes over the cgroup"
    )


def _sentence(error: OSError) -> str:
    why = os.strerror(error.errno or 0)
    if error.errno == errno.EPERM:
        needs = "CAP_SYS_NICE and, for real time, cpu.rt_runtime_us of the cgroup"
        return f"{why}; it needs {needs}"
    if error.errno == errno.EBUSY:
        return f"{why}; the CPUs have too little free time for these deadlines"
    return why


def _call(which: int, *args: int | bytes) -> None:
    numbers = _NUMBERS.get(platform.machine())
    if numbers is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    call("syscall", numbers[which], *args)
