"""The podpools policy: sets of CPUs of a fixed size, each for whole pods.

`settings` computes the instances of all pools, with their CPUs, from the configuration
and the machine: they never change. `policy` chooses the instance of a pod, in the pool
that its annotation names, by that pool's fill order; all containers of the pod share
its CPUs. Pods of reserved namespaces run in the reserved pool. docs/podpools.md has
examples.

Checked by: tests/laws/test_podpools_policy.py;
tests/laws/test_podpools_reconfigured.py.
"""

from nri_resmgr.policy.podpools.policy import PodpoolsPolicy, PodpoolsState
from nri_resmgr.policy.podpools.settings import (
    DEFAULT,
    RESERVED,
    FillOrder,
    PodpoolsSettings,
    PoolInstance,
)

__all__ = [
    "DEFAULT",
    "RESERVED",
    "FillOrder",
    "PodpoolsPolicy",
    "PodpoolsSettings",
    "PodpoolsState",
    "PoolInstance",
]
