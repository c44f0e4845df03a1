"""Keeps the kernel's reclaim threads on the CPUs of their memory nodes."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from typing import Final

from nri_resmgr.host.boot_journal import boot_of
from nri_resmgr.host.cgroups.layout import CGROUP_ROOT
from nri_resmgr.host.fields import optional_cpus, text_or_nothing
from nri_resmgr.host.tree import HostTree, Tree
from nri_resmgr.values import NO_CPUS, CpuSet, HostError

_EFFECTIVE: Final = f"{CGROUP_ROOT}/cpuset.cpus.effective"
_CPUS_OF_NODE: Final = "/sys/devices/system/node/node{}/cpulist"

# ``/proc/PID/stat``: the flags are the ninth field.
_STAT: Final = re.compile(
    r"\d+ \((?:kswapd|kcompactd)(\d{1,4})\) \S+ (?:-?\d+ ){5}(\d+) ", re.ASCII
)
_IS_KERNEL_THREAD: Final = 0x0020_0000  # PF_KTHREAD of include/linux/sched.h

_INVISIBLE: Final = (
    "the kernel's threads are not visible; run with the host's PID namespace "
    "(hostPID: true)"
)


class ReclaimThreads:
    """The threads that reclaim and compact memory, ``kswapdN`` and ``kcompactdN``.

    The kernel starts them on the CPUs of node N. Each change of a partition gives them
    all CPUs that are in no partition, those of every node, for good. So the memory of a
    node is then reclaimed from afar. An affinity that a program has set is kept, as far
    as partitions leave a CPU of it; so each thread is given the CPUs of its node again,
    and only if it has what the kernel gives it: another affinity is an operator's.

    Args:
        tree: The host.
        processes: The one whose threads can be changed; nothing is done where this is
            another machine, such as a captured one.

    Attributes:
        problem: Why threads are not kept; empty if they are.

    Source:
        Linux 6.12: ``kswapd`` and ``kcompactd`` in mm/, ``update_tasks_cpumask`` in
        kernel/cgroup/cpuset.c, ``user_cpus_ptr`` in kernel/sched/syscalls.c. From 7.0
        on kernel threads keep the CPUs that they prefer.
    """

    def __init__(self, tree: Tree, processes: Tree | None = None) -> None:
        self._tree = tree
        self._processes = processes or HostTree()
        self._threads: dict[int, int] = {}  # their nodes, by id
        self.problem = ""

    def settle(self) -> None:
        """Give threads the CPUs of their nodes that partitions have taken from them."""
        try:
            self.problem = self._settle()
        except HostError as error:
            self.problem = str(error)

    def _settle(self) -> str:
        boot = boot_of(self._processes)
        if not boot or boot_of(self._tree) != boot:
            return ""
        everywhere = optional_cpus(self._tree, _EFFECTIVE) or NO_CPUS
        nodes = dict(self._nodes_apart(everywhere))
        if not nodes:
            return ""
        if not self._threads:
            self._threads = dict(self._found())
        if not self._threads:
            return _INVISIBLE
        wrong = set(everywhere)
        try:
            for thread, node in self._threads.items():
                if node in nodes and os.sched_getaffinity(thread) == wrong:
                    _move(thread, nodes[node])
        except ProcessLookupError:
            self._threads = {}  # its node has gone offline, and may return
        except OSError as error:
            return f"sched_setaffinity: {os.strerror(error.errno or 0).lower()}"
        return ""

    def _nodes_apart(self, everywhere: CpuSet) -> Iterator[tuple[int, CpuSet]]:
        """Yield nodes that do not have all CPUs, and those that they have."""
        for name in self._tree.names("/sys/devices/system/node"):
            number = name.removeprefix("node")
            if number.isdecimal():
                cpus = optional_cpus(self._tree, _CPUS_OF_NODE.format(number))
                if cpus and everywhere - cpus:
                    yield int(number), cpus

    def _found(self) -> Iterator[tuple[int, int]]:
        for name in self._processes.names("/proc"):
            if name.isdecimal():
                stat = _STAT.match(
                    text_or_nothing(self._processes, f"/proc/{name}/stat")
                )
                if stat is not None and int(stat[2]) & _IS_KERNEL_THREAD:
                    yield int(name), int(stat[1])


def _move(thread: int, cpus: CpuSet) -> None:
    try:
        os.sched_setaffinity(thread, cpus)
    except OSError as error:
        if error.errno != errno.EINVAL:  # partitions have all CPUs of its node
            raise
