"""Policies: pure functions from a state and an event to a decision.

No module below uses a clock, files, random numbers or a log, so that every decision
can be repeated from its arguments. A policy of another package imports its parts from
here, and those of its kind from `nri_resmgr.policies` (docs/write-a-policy.md); modules
of ours import from the module that defines a name. Read in this order:

* `events`: what happens to containers. `preferences` and `affinity` are what their
  annotations ask for.
* `decision`: what a policy returns, and the protocol that it fulfils; `rules` names
  what led to it. `views` is what a policy shows to containers, to the host settings and
  to operators.
* `ledger`: containers with the pins last sent, the part that all states share.
* `base` and `simple`: bases of policies. `topology_aware`, `balloons` and `static`
  build on `base`, `static_plus` on `static`; `podpools`, `dynamic_pools`,
  `static_pools` and `none` are small. `cpu_pools` is what those with named pools share.
* `cpus` and `mems`: the allocators of CPUs and of memory nodes.
* `requests` and `reconstruct`: Kubernetes' requests from cgroup values.
* `reported`: which grants of a checkpoint still count. `records`: states as tables of
  one.
* `whole_pods`, `claims`, `scheduling`, `host_use`, `pool_request` and `matching`: what
  several policies do alike. `advice`: what would help, tried before it is said.
* `errors` and `sentences`: refusals, and reasons in English. `losses`: what another
  configuration would take from running containers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # see `__getattr__`
    from nri_resmgr.policy.base import PolicyBase
    from nri_resmgr.policy.decision import Decision, PinUpdate, Reason, Resources, Timer
    from nri_resmgr.policy.events import (
        NO_PIN,
        ClaimPrepared,
        ClaimReturned,
        ColdStartEnded,
        ContainerSpec,
        Created,
        Event,
        Pin,
        PodCreated,
        PodOverhead,
        PodStopped,
        Rebalance,
        Removed,
        Started,
        Stopped,
        Synchronized,
        Updated,
    )
    from nri_resmgr.policy.host_use import (
        NO_CLASSES,
        NO_CPU_CLASSES,
        NO_HOST_USE,
        CpuClassRules,
        GivenClasses,
        HostUse,
    )
    from nri_resmgr.policy.ledger import Entry, KnowsContainers, Ledger
    from nri_resmgr.policy.preferences import Preferences
    from nri_resmgr.policy.records import BadRecord, Records, Restored, StateRecords
    from nri_resmgr.policy.rules import Rule
    from nri_resmgr.policy.simple import Placed, SimplePolicy, SimpleState
    from nri_resmgr.policy.views import (
        Candidate,
        CpuRoom,
        PoolUse,
        Reservation,
        ViewedPolicy,
    )
    from nri_resmgr.topology import Machine
    from nri_resmgr.values import (
        NO_CPUS,
        NO_NODES,
        Bytes,
        CpuSet,
        MilliCpus,
        NodeSet,
        PolicyError,
        QosClass,
    )

__all__ = [
    "NO_CLASSES",
    "NO_CPUS",
    "NO_CPU_CLASSES",
    "NO_HOST_USE",
    "NO_NODES",
    "NO_PIN",
    "BadRecord",
    "Bytes",
    "Candidate",
    "ClaimPrepared",
    "ClaimReturned",
    "ColdStartEnded",
    "ContainerSpec",
    "CpuClassRules",
    "CpuRoom",
    "CpuSet",
    "Created",
    "Decision",
    "Entry",
    "Event",
    "GivenClasses",
    "HostUse",
    "KnowsContainers",
    "Ledger",
    "Machine",
    "MilliCpus",
    "NodeSet",
    "Pin",
    "PinUpdate",
    "Placed",
    "PodCreated",
    "PodOverhead",
    "PodStopped",
    "PolicyBase",
    "PolicyError",
    "PoolUse",
    "Preferences",
    "QosClass",
    "Reason",
    "Rebalance",
    "Records",
    "Removed",
    "Reservation",
    "Resources",
    "Restored",
    "Rule",
    "SimplePolicy",
    "SimpleState",
    "Started",
    "StateRecords",
    "Stopped",
    "Synchronized",
    "Timer",
    "Updated",
    "ViewedPolicy",
]

# Each imports none of those after it.
_MODULES: Final = (
    "nri_resmgr.values",
    "nri_resmgr.topology",
    "nri_resmgr.policy.rules",
    "nri_resmgr.policy.preferences",
    "nri_resmgr.policy.events",
    "nri_resmgr.policy.decision",
    "nri_resmgr.policy.host_use",
    "nri_resmgr.policy.ledger",
    "nri_resmgr.policy.views",
    "nri_resmgr.policy.records",
    "nri_resmgr.policy.base",
    "nri_resmgr.policy.simple",
)

# Hidden from type checkers, for which each misspelt name would be in this module.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name of the list above when it is asked for.

        Each import of a module of this package imports this one first: the webhook and
        `nri-resmgr explain` need few of them.
        """
        if name in __all__:
            for module in map(import_module, _MODULES):
                if hasattr(module, name):
                    return getattr(module, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
