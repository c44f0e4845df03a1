"""The kubelet's own managers of CPUs and memory, which would write what we write."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from nri_resmgr.host.tree import Tree, UnreadableHostFile

KUBELET_ROOT: Final = "/var/lib/kubelet"

# Each does nothing under its other policy, "none" or "None".
_IN_THE_WAY: Final = "static"

_KINDS: Final = ("cpu", "memory")


class KubeletManager(msgspec.Struct, frozen=True):
    """A manager that gives containers CPUs or memory nodes on its own.

    Attributes:
        kind: ``cpu`` or ``memory``.
        policy: As the kubelet spells it, ``static`` or ``Static``.
        path: The file that says so.
    """

    kind: str
    policy: str
    path: str

    def __str__(self) -> str:
        return (
            f"the kubelet's {self.kind} manager has the policy {self.policy} "
            f"({self.path}): it and this daemon will undo each other's work; set "
            f"{self.kind}ManagerPolicy to {'none' if self.kind == 'cpu' else 'None'}"
        )


def managers_in_the_way(tree: Tree) -> tuple[KubeletManager, ...]:
    """Find the managers that are static, by what the kubelet wrote and what it reads.

    Its state says what it does now, even if told by a flag; its configuration, what
    it will do when it is started again.

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
        policy = policy_of(_text(tree, path), kind)
        if policy.lower() == _IN_THE_WAY:
            yield KubeletManager(kind, policy, path)
            return


def _text(tree: Tree, path: str) -> str:
    try:
        return tree.read(path) or ""
    except UnreadableHostFile:  # not for us: then nothing is known
        return ""


def _policy_of_state(text: str, _: str) -> str:
    try:
        state: Any = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    policy = state.get("policyName") if isinstance(state, dict) else None
    return policy if isinstance(policy, str) else ""


def _policy_of_config(text: str, kind: str) -> str:
    # YAML or JSON. The key stands at the top level only, and the library that reads
    # YAML would take longer than the runtime's next request can wait.
    line = rf"^[ \t]*[\"']?{kind}ManagerPolicy[\"']?[ \t]*:[ \t]*[\"']?(\w+)"
    match = re.search(line, text, re.MULTILINE | re.ASCII)
    return match[1] if match else ""
