"""What an agent reports of itself to the daemon."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from nri_resmgr.agent.api import ApiClient
from nri_resmgr.log import Logger
from nri_resmgr.values.documents import JsonObject
from nri_resmgr.values.shorten import shortened
from nri_resmgr.version import our_version

log = Logger(__name__)

_LONGEST_PROBLEM: Final = 1000  # characters; the daemon takes 1,024


class OwnReport:
    """Makes the bodies of an agent's reports to the daemon.

    Args:
        api: The client of the API server.
        node: Name of the node.
        problems: Returns what cannot be watched now, empty where there is nothing.
    """

    def __init__(
        self, api: ApiClient, node: str, problems: Callable[[], Iterable[str]]
    ) -> None:
        self._api = api
        self._node = node
        self._problems = problems
        self._left_out = ""  # as it was logged

    def body(self) -> JsonObject:
        """Return the body of ``POST /v1/agent``."""
        problems = (*self._problems(), self._lacking_in_definitions())
        problem = "; ".join(one for one in problems if one)
        return {
            "version": our_version(),
            "node": self._node,
            "contactSeconds": self._api.silent_seconds,
            "problem": shortened(problem, _LONGEST_PROBLEM),
        }

    def _lacking_in_definitions(self) -> str:
        found = self._api.left_out
        if found and found != self._left_out:
            log.warning("agent.fields-left-out", fields=found)
        self._left_out = found
        return found and f"definitions of the cluster lack {found}: update the CRDs"
