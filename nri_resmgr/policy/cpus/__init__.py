"""The CPU allocator: CPUs to take out of the free ones, and CPUs to release.

Pure functions over `nri_resmgr.topology.Machine`. `allocate` makes a `problem` of a
request; `uniform` solves it where CPUs are interchangeable (with `limits` to prune),
`search` where they differ. `index` and `levels` are the machine's groups.
docs/cpu-allocator.md has the criteria, the calls and the slowest requests.

What it guarantees:

* No other pick of the same size is better: by `near` and `far`, and then by the order
  of `PickCosts`. This holds for any size; no request is so large that its pick is only
  an approximation.
* The answer depends on the arguments alone. Of equal picks the one that takes less out
  of the later groups wins, so that CPU ids and not the history decide.
* CPUs that are released are found again: a request for as many, with the CPUs that
  stayed as `held` and the same preferences, gets just these.

How: each criterion is a digit of one integer, wide enough for any sum. The price of a
pick is the sum of the prices of the groups that it touches and of its CPUs, so that to
compare two sums is to compare criterion by criterion. The best pick of *n* CPUs out of
two groups consists of a best pick out of each, hence prices are added up from the cores
to the machine, for every size that can matter. The third guarantee follows from the
same sum: a group costs nothing where CPUs are held, so that the prices of a part and of
the rest add up to that of the whole.

What was rejected:

* A walk from the machine down to the cores that takes the fullest groups and then a
  tight one, with the exact search only where a bound did not vouch for the result, and
  only for small requests. Two tight groups can be better (see below), and ties were
  decided in another order than by the exact search, so that released CPUs were not
  found again.
* The exact search for all sizes where CPUs are interchangeable. It takes *wanted* times
  *free* steps; `limits` leaves out the sizes that no best pick takes out of a group,
  which made a limit of the request's size unnecessary.
* The class of CPUs before packages and NUMA nodes, as nri-plugins has it: remote memory
  costs more than slow cores.
* A cache of indices by the machine's content: to compare two machines takes longer than
  an allocation. It goes by identity.

What it costs: a call on a machine of 256 CPUs takes 76 µs, of 2048 CPUs 135 µs, medians
over all states (docs/benchmarks.md, "Allocators"). Where CPUs count one by one, because
of their class or because of how cores are used, it takes about *wanted* times *free*
steps: one CPU of 2048 takes 9 ms with `CoreUse.ONE_THREAD` and 0.03 ms without (Python
3.11). So balloons that prefer one thread of each core take them in two cheaper steps;
see `nri_resmgr.policy.balloons.pick`.

Checked by: tests/laws/test_cpu_allocator.py, which compares with all picks of small
machines; tests/laws/test_cpu_allocator_search.py, which compares the two searches on
larger ones; tests/laws/test_cpu_allocator_release.py; and for the sums
tests/policy/cpus/test_merge_prices.py.

An example. Of three caches with four CPUs each, one is idle and the others have three
free CPUs. Six CPUs touch two caches in any case. The fullest first, that would be all
of the idle one and two of another; two tight ones leave the idle one whole:

>>> from nri_resmgr.topology.synthetic import parse_spec
>>> from nri_resmgr.values import CpuSet
>>> machine = parse_spec("1s12c1t l3=4")
>>> pick = allocate_cpus(CpuRequest(6, CpuSet.parse("0-3,5-7,9-11")), machine)
>>> str(pick.cpus)
'5-7,9-11'

It gives two of them back, and gets the same two again:

>>> gone = release_cpus(pick.cpus, 2, machine).cpus
>>> stay = pick.cpus - gone
>>> free = CpuSet.parse("0-3") | gone
>>> str(gone), allocate_cpus(CpuRequest(2, free, held=stay), machine).cpus == gone
('10-11', True)
"""

from __future__ import annotations

from nri_resmgr.policy.cpus.allocate import allocate_cpus, release_cpus
from nri_resmgr.policy.cpus.levels import TopologyLevel
from nri_resmgr.policy.cpus.priorities import (
    CpuPriority,
    PrioritySets,
    machine_priorities,
)
from nri_resmgr.policy.cpus.request import (
    CoreUse,
    CpuPick,
    CpuPreferences,
    CpuRequest,
    CpusExhausted,
    PickReason,
    PickRule,
)

__all__ = [
    "CoreUse",
    "CpuPick",
    "CpuPreferences",
    "CpuPriority",
    "CpuRequest",
    "CpusExhausted",
    "PickReason",
    "PickRule",
    "PrioritySets",
    "TopologyLevel",
    "allocate_cpus",
    "machine_priorities",
    "release_cpus",
]
