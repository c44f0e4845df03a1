"""Finds kubelet resource managers that would write the same cgroup files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from nri_resmgr.host.fields import text_or_nothing
from nri_resmgr.host.paths import KUBELET_ROOT
from nri_resmgr.host.tree import Tree

# The policy under which a manager pins containers; "none" does nothing.
_PINNING: Final = "static"

_KINDS: Final = ("cpu", "memory")


class KubeletManager(msgspec.Struct, frozen=True):
    """A kubelet manager that pins containers to CPUs or memory nodes.

    Attributes:
        policy: As the kubelet spells it, ``static`` or ``Static``; empty where only
            requests show that there is one.
        evidence: The file with the policy, or a request.
    """

    kind: str
    policy: str
    evidence: str

    def __str__(self) -> str:
        none = "none" if self.kind == "cpu" else "None"
        remedy = f"set {self.kind}ManagerPolicy to {none}"
        if not self.policy:
            # Plugins see what those before them have changed.
            return (
                f"the kubelet has a static {self.kind} manager, or another NRI plugin "
                f"pins containers before this one ({self.evidence}): they and this "
                f"daemon will overwrite each other's pinning; {remedy}, or remove "
                f"that plugin"
            )
        return (
            f"the kubelet's {self.kind} manager has the policy {self.policy} "
            f"({self.evidence}): it and this daemon will overwrite each other's "
            f"pinning; {remedy}"
        )


def static_managers(tree: Tree) -> tuple[KubeletManager, ...]:
    """Find managers with the static policy in the kubelet's state and configuration.

    Its state has the policy in force, even if set by a flag; its configuration has the
    policy of its next start.

    Source:
        Kubernetes, pkg/kubelet/cm/{cpumanager,memorymanager}/state/checkpoint.go, and
        KubeletConfiguration v1beta1.
    """
    return tuple(found for kind in _KINDS for found in _managers(tree, kind))


def _managers(tree: Tree, kind: str) -> Iterator[KubeletManager]:
    files = (
        (f"{KUBELET_ROOT}/{kind}_manager_state", _policy_of_state),
        (f"{KUBELET_ROOT}/config.yaml", _policy_of_config),
    )
    for path, policy_of in files:
        # Without permission to read the file, the policy counts as unknown.
        policy = policy_of(text_or_nothing(tree, path), kind)
        if policy.lower() == _PINNING:
            yield KubeletManager(kind, policy, path)
            return


def _policy_of_state(text: str, _: str) -> str:
    try:
        state: object = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    policy = state.get("policyName") if isinstance(state, dict) else None
    return policy if isinstance(policy, str) else ""


def _policy_of_config(text: str, kind: str) -> str:
    # YAML or JSON. The key is at the top level only; importing a YAML parser would
    # delay the runtime's next request.
    line = rf"^[ \t]*[\"']?{kind}ManagerPolicy[\"']?[ \t]*:[ \t]*[\"']?(\w+)"
    match = re.search(line, text, re.MULTILINE | re.ASCII)
    return match[1] if match else ""
