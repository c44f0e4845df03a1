"""What the runtime reports of running containers, compared with what is known.

After a restart two accounts of each container exist, and either can be the older one:

* The checkpoint lacks decisions if the daemon was killed before it was written.
* The runtime's record lacks decisions that are in force already: cgroups are written
  first, and the record follows in small batches. Where partitions of the kernel keep
  others off exclusive CPUs, the record of these others is never brought in line.

What it guarantees: a report that a late record explains is not taken for a later
decision, and one that it cannot explain is. So a policy knows which grants of the
checkpoint still count. Where the kernel's own values can be read they have replaced the
report before (`nri_resmgr.app.plugin.present_pins`).

How: whether a record is late can be seen without a clock, because of what decisions do.

* CPUs: a container that shares CPUs loses just those that become exclusive. So a report
  that has the CPUs that were sent, and besides only exclusive ones of others, is late;
  any other difference was decided later. Exclusive CPUs are known by their number: a
  Guaranteed container that runs on as many as it requests owns them.
* Memory nodes: a running container only gets more, or other CPUs as well. So a report
  with fewer of them is late, one with more was decided later, and one with others is
  not from us.

What was rejected: to take fewer memory nodes for a later decision, too. A decision that
was in the checkpoint, and not in force yet when the daemon ended, was lost by it.

What it costs: a union of the CPUs of all containers, and a comparison for each.

Checked by: tests/policy/test_reported.py, case by case;
tests/laws/test_old_checkpoints.py, with checkpoints of any age, records that are any
number of decisions behind, and partitions.

An example: `web` has exclusive CPUs 0 and 1, and `log` shares 2 to 7, which was sent
and is in force. The record of `log` still has all eight, which says nothing. One that
lacks CPU 2 as well is from a later decision:

>>> from nri_resmgr.values import MilliCpus, QosClass
>>> two, runs = MilliCpus(2000), Pin(CpuSet.parse("0-1"))
>>> web = ContainerSpec(
...     "web", qos=QosClass.GUARANTEED, request=two, limit=two, present=runs
... )
>>> reported = Reported.of([web])
>>> known = Entry(ContainerSpec("log"), Pin(CpuSet.parse("2-7")))
>>> [reported.is_known(Pin(CpuSet.parse(cpus)), known) for cpus in ("0-7", "3-7")]
[True, False]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import msgspec

from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.ledger import Entry
from nri_resmgr.values import CpuSet


class Reported(msgspec.Struct, frozen=True):
    """The running containers of a node, as the runtime reports them.

    A report can be older than what is known: cgroups are written before the runtime's
    record follows, and where partitions keep others off exclusive CPUs it need not
    follow at all. What is known can be older, too: a checkpoint lacks the decisions
    before a crash.

    Attributes:
        owned: The exclusive CPUs of Guaranteed containers.
    """

    owned: CpuSet

    @classmethod
    def of(cls, specs: Iterable[ContainerSpec]) -> Self:
        """Return the report of all running containers."""
        return cls(CpuSet.union(one.present.cpus for one in specs if owns_cpus(one)))

    def is_known(self, pin: Pin, entry: Entry) -> bool:
        """Return whether nothing was decided about a container after *entry*.

        Args:
            pin: What the runtime reports of it; what is not reported says nothing.
            entry: What is known.
        """
        sent, cpus = entry.last_sent, pin.cpus
        if cpus and sent.cpus and sent.cpus not in (cpus, cpus - self.owned):
            return False
        return self.is_known_memory(pin, entry)

    @staticmethod
    def is_known_memory(pin: Pin, entry: Entry) -> bool:
        """Return whether nothing was decided about its memory nodes after *entry*."""
        # A running container only gets more memory nodes: others are not from us.
        sent = entry.last_sent.mems
        return not sent or sent == pin.mems or not sent <= pin.mems

    def shared_part(self, cpus: CpuSet) -> CpuSet:
        """Return the CPUs that a container which shares them can have in force."""
        return cpus - self.owned or cpus


def owns_cpus(spec: ContainerSpec) -> bool:
    """Return whether a Guaranteed container runs on as many CPUs as it requests."""
    return len(spec.present.cpus) == spec.whole_cpus
