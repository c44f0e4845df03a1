"""Record of the block I/O files of containers, for the next start."""

from __future__ import annotations

import json
from typing import Final

from nri_resmgr.app.classes.blockio.host import BlockIoHost
from nri_resmgr.classes.unified import Files
from nri_resmgr.host.resctrl import TextStore
from nri_resmgr.log import Logger
from nri_resmgr.values import HostError

log = Logger(__name__)

_NAME: Final = "blockio"


class BlockIoRecord:
    """Stores the files that this daemon has set.

    Without it, a restart would leave the limits of removed classes in force, and send
    every container's limits again.

    Args:
        store: A `StateDir`; None for no record.
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
            applied = {} if text is None else _parsed(text)
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
        text = (
            json.dumps(dict(sorted(host.applied.copy().items())))
            if host.applied
            else None
        )
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


def _parsed(text: str) -> dict[str, Files]:
    """Read a record.

    Raises:
        ValueError: The text is no record.
    """
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("no mapping")  # noqa: TRY004 - the file is bad, not a caller
    return {key: _files(one) for key, one in document.items()}


def _files(found: object) -> Files:
    if isinstance(found, dict) and all(_is_lines(one) for one in found.values()):
        return {name: tuple(lines) for name, lines in found.items()}
    raise ValueError("no files")


def _is_lines(found: object) -> bool:
    return isinstance(found, list) and all(isinstance(one, str) for one in found)
