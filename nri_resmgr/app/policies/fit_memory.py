"""Memory classes of a document, held against the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nri_resmgr.classes.memory import NumaPolicy, PolicyFlag
from nri_resmgr.classes.memory.numa import is_word
from nri_resmgr.config import PolicyConfig
from nri_resmgr.host.platform import read_cgroup_layout
from nri_resmgr.host.tree import Tree
from nri_resmgr.topology import CgroupLayout, Machine
from nri_resmgr.values import NO_NODES, NodeSet

_QOS: Final = "$.spec.memoryQos"
_POLICIES: Final = "$.spec.memoryPolicy.classes"
_NO_FILES: Final = (
    "cgroups of version 1 have no files for it; containers that ask for it are refused"
)


def fit_memory(
    config: PolicyConfig, machine: Machine, tree: Tree
) -> Iterator[tuple[str, str]]:
    """Say which classes no container can have on a host; path and reason.

    None of it is a mistake: many nodes have one document.
    """
    if config.memory_qos is not None:
        layout = read_cgroup_layout(tree)
        if layout in (CgroupLayout.V1, CgroupLayout.HYBRID):
            yield _QOS, _NO_FILES
    policies = config.memory_policy.classes if config.memory_policy else {}
    for place, policy in enumerate(policies.values()):
        if missing := _named(policy) - machine.node_ids:
            path = f"{_POLICIES}[{place}].policy.nodes"
            why = f"this machine has no node {missing}"
            yield path, f"{why}; containers of the class are refused"


def _named(policy: NumaPolicy) -> NodeSet:
    """Return the nodes that a policy names itself."""
    if is_word(policy.nodes) or PolicyFlag.RELATIVE_NODES in policy.flags:
        return NO_NODES
    return NodeSet.parse(policy.nodes)
