"""The claims of other CPU drivers, kept for the next start of the daemon.

Without them, their CPUs would be granted to others from a restart until the kubelet has
answered.
"""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Final

from nri_resmgr.app.background.threads import in_thread
from nri_resmgr.app.plugin.claimed_containers import ClaimedContainers
from nri_resmgr.app.plugin.cpu_claims import ClaimTable
from nri_resmgr.host.state_dir import StateDir, StateInUse, StateUnusable
from nri_resmgr.log import Logger
from nri_resmgr.values.documents import BadValue, from_plain, to_plain

log = Logger(__name__)

CLAIMS_NAME: Final = "claims.json"
"""The file in the state directory."""

_PAUSE: Final = 0.1  # seconds between two writes


def read_claims(state: StateDir) -> ClaimTable:
    """Return the claims of an earlier process; none if they cannot be read."""
    try:
        text = state.read(CLAIMS_NAME)
        return ClaimTable() if text is None else parse_claims(text)
    except (StateInUse, StateUnusable) as error:
        log.error("state.unreadable", why=str(error))
    except BadValue as error:
        # The kubelet confirms them again.
        log.error("state.unreadable", why=f"{CLAIMS_NAME}: {error}")
    return ClaimTable()


def parse_claims(text: str) -> ClaimTable:
    """Parse the text of the file.

    Raises:
        BadValue: It is not such a text.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadValue(f"not JSON: {error}") from None
    return from_plain(ClaimTable, data)


def claims_text(table: ClaimTable) -> str:
    """Return the text for the file."""
    return json.dumps(to_plain(table))


class ClaimsFile:
    """Writes the claims whenever they have changed.

    Args:
        state: The state directory.
        claims: What the policy knows.
    """

    def __init__(self, state: StateDir, claims: ClaimedContainers) -> None:
        self._state = state
        self._claims = claims

    async def run(self) -> None:
        """Write until cancelled; call it again after an exception.

        Raises:
            HostError: A write failed.
        """
        changed = self._claims.changed
        while True:
            await changed.wait()
            changed.clear()
            text = claims_text(self._claims.table)
            try:
                await in_thread(partial(self._state.write, CLAIMS_NAME, text))
            except BaseException:
                changed.set()
                raise
            await asyncio.sleep(_PAUSE)

    def close(self) -> None:
        """Write what has changed since, at the end."""
        if self._claims.changed.is_set():
            try:
                self._state.write(CLAIMS_NAME, claims_text(self._claims.table))
            except (StateInUse, StateUnusable) as error:
                log.error("state.not-written", why=str(error))
