"""Record of the block I/O files of containers, for the next start."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from nri_resmgr.app.classes.blockio.host import BlockIoHost
from nri_resmgr.host.resctrl import TextStore
from nri_resmgr.log import Logger
from nri_resmgr.values import HostError

log = Logger(__name__)

_NAME: Final = "blockio"

_Record: TypeAlias = dict[str, dict[str, tuple[str, ...]]]
"""Lines by container and file."""


class BlockIoRecord:
    """Stores the files that this daemon has set.

    Without it, a restart would leave the limits of removed classes in force, and send
    every container's limits again. Without a store, nothing is recorded.
    """

    def __init__(self, store: TextStore | None) -> None:
        self._store = store
        self._text: str | None = None

    def load(self, host: BlockIoHost) -> None:
        """Load the files that an earlier process has set."""
        if self._store is None:
            return
        try:
            text = self._store.read(_NAME)
            applied = {} if text is None else msgspec.json.decode(text, type=_Record)
        except ValueError:
            log.warning("blockio.record-bad", path=self._store.set_aside(_NAME))
        except HostError as error:
            log.warning("blockio.record-unreadable", why=str(error))
        else:
            self._text = text
            host.applied = applied | host.applied

    def save(self, host: BlockIoHost) -> None:
        """Store the files that containers have now, if they have changed."""
        if self._store is None:
            return
        text = None
        if host.applied:
            # A copy: the event loop adds new containers meanwhile.
            applied = dict(sorted(host.applied.copy().items()))
            text = msgspec.json.encode(applied).decode()
        if text == self._text:
            return
        try:
            if text is None:
                self._store.remove(_NAME)
            else:
                self._store.write(_NAME, text)
        except HostError as error:
            host.problems.fail("record", str(error))
        else:
            host.problems.clear("record")
            self._text = text
