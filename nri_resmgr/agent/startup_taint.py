"""The startup taint: removed from the Node once its daemon serves the runtime.

No pod is scheduled on a node before that if its kubelet registers with the taint
(``registerWithTaints``). A kubelet sets it only where it makes the Node, so one removal
for each Node is enough, and the agent never sets it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from nri_resmgr.agent.api import NODES, ApiClient, ApiObject, Ref
from nri_resmgr.agent.api.errors import Conflict, ObjectMissing
from nri_resmgr.agent.choice import Chosen, ConfigObject, Waiting
from nri_resmgr.agent.node_report import Facts
from nri_resmgr.agent.verdict import Outcome
from nri_resmgr.log import Logger
from nri_resmgr.values import InputError

log = Logger(__name__)

_AGAIN: Final = 0.5
"""Seconds until the Node is read again, where another write came between."""

_SYNCHRONIZED: Final = "synchronized"
_KUBERNETES: Final = "kubernetes.io"
_DOMAIN: Final = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?"
_NAME: Final = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_KEY: Final = re.compile(rf"({_DOMAIN}/)?{_NAME}", re.ASCII)


@dataclass(eq=False)
class BadTaint(InputError):
    """The key is none that a startup taint may have."""

    flag: str
    key: str
    why: str

    def __str__(self) -> str:
        return f"{self.flag}: {self.why}, not {self.key!r}"


def check_key(flag: str, key: str) -> str:
    """Return the key of a taint; empty for none.

    Raises:
        BadTaint: It is no key, or belongs to Kubernetes.
    """
    if key and not _KEY.fullmatch(key):
        why = "expected the key of a taint, such as nri-resmgr.io/not-ready"
        raise BadTaint(flag, key, why)
    domain, slash, _ = key.partition("/")
    if slash and f".{domain}".endswith(f".{_KUBERNETES}"):
        # Controllers set and remove them, by what they know of the node.
        raise BadTaint(flag, key, f"expected a key outside of {_KUBERNETES}")
    return key


def is_serving(facts: Facts) -> bool:
    """Return whether containers that start now are pinned by the cluster's document.

    Where one was rejected, or the cluster has none or several for the node, the one
    that the node has is in force.
    """
    match facts.choice:
        case Waiting():
            return False
        case Chosen(config) if not _is_judged(config, facts):
            return False
    state = facts.state
    if state is None or state.daemon.dry_run:
        return False
    return state.session.state == _SYNCHRONIZED


def _is_judged(config: ConfigObject, facts: Facts) -> bool:
    """Return whether the verdict is on this document, and not on one before it."""
    judged = facts.config
    return (
        judged is not None
        and (judged.uid, judged.text) == (config.uid, config.text)
        and facts.verdict.outcome is not Outcome.PENDING
    )


class StartupTaint:
    """Removes the taint from a Node, once.

    Args:
        api: The client.
        node: Name of the node.
        key: Of the taint; its value and effect do not matter.
    """

    def __init__(self, api: ApiClient, node: str, key: str) -> None:
        self._api = api
        self._node = node
        self._key = key
        self._settled = ""  # the UID of the Node that has none

    async def write(self, facts: Facts, uid: str) -> float:
        """Remove it if it is time; return the seconds until it is to be tried again.

        Args:
            facts: What the agent knows.
            uid: Of the present Node; empty if it is not known.
        """
        if uid in ("", self._settled) or not is_serving(facts):
            return 0.0
        ref = Ref(NODES, self._node)
        try:
            found = await self._api.get(ref)
            taints = _taints_of(found)
            left = [one for one in taints if _key_of(one) != self._key]
            if left != taints:
                # The list is written as a whole: not over what came between.
                version = {"resourceVersion": found.version}
                body = {"metadata": version, "spec": {"taints": left or None}}
                await self._api.merge_patch(ref, body)
                log.info("agent.taint-removed", node=self._node, taint=self._key)
        except Conflict:
            return _AGAIN
        except ObjectMissing:
            return 0.0  # the next one has another UID
        self._settled = found.uid
        return 0.0


def _taints_of(node: ApiObject) -> list[object]:
    spec = node.body.get("spec")
    taints = spec.get("taints") if isinstance(spec, dict) else None
    return taints if isinstance(taints, list) else []


def _key_of(taint: object) -> object:
    return taint.get("key") if isinstance(taint, dict) else None
