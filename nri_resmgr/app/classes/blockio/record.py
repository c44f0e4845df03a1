"""Which block I/O files containers have, kept for the next start."""

from __future__ import annotations

import json
from typing import Any, Final

from nri_resmgr.app.classes.blockio.host import BlockIoHost
from nri_resmgr.classes.unified import Files
from nri_resmgr.host.resctrl import Keeper
from nri_resmgr.log import Logger
from nri_resmgr.values import HostError

log = Logger(__name__)

_NAME: Final = "blockio"


class BlockIoRecord:
    """Knows after a restart what is to be taken away from reference.

    Without it, limits of a class that went meanwhile would stay, and every container
    would be told its limits again.

    Args:
        keeper: A `StateDir`; None where no state is kept.
    """

    def __init__(self, keeper: Keeper | None) -> None:
        self._keeper = keeper
        self._text: str | None = None

    def load(self, host: BlockIoHost) -> None:
        """Take up what an earlier process gave."""
        if self._keeper is None:
            return
        try:
            text = self._keeper.read(_NAME)
            given = {} if text is None else _parsed(text)
        except ValueError:
            log.warning("blockio.record-bad", path=self._keeper.set_aside(_NAME))
        except HostError as error:
            log.warning("blockio.record-unreadable", why=str(error))
        else:
            self._text = text
            host.given = given | host.given

    def save(self, host: BlockIoHost) -> None:
        """Keep what containers have now, if that is news."""
        if self._keeper is None:
            return
        text = (
            json.dumps(dict(sorted(host.given.copy().items()))) if host.given else None
        )
        if text == self._text:
            return
        try:
            if text is None:
                self._keeper.remove(_NAME)
            else:
                self._keeper.write(_NAME, text)
        except HostError as error:
            host.problems.fail("record", str(error))
        else:
            host.problems.clear("record")
            self._text = text


def _parsed(text: str) -> dict[str, Files]:
    """Take a text apart.

    Raises:
        ValueError: It is no record.
    """
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("no mapping")  # noqa: TRY004 - nobody's bug: a file is bad
    return {key: _files(one) for key, one in document.items()}


def _files(found: Any) -> Files:
    if isinstance(found, dict) and all(_is_lines(one) for one in found.values()):
        return {name: tuple(lines) for name, lines in found.items()}
    raise ValueError("no files")


def _is_lines(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(one, str) for one in found)
