"""Logs problems with annotations, each once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from nri_resmgr.app.annotations.errors import SHOWN
from nri_resmgr.app.annotations.reading import AnnotationProblem
from nri_resmgr.log import Logger
from nri_resmgr.values.shorten import shortened

log = Logger(__name__)

# Enough for a busy node. Beyond it warnings repeat, which is better than a set that
# grows for as long as the daemon runs.
_MOST_LOGGED: Final = 4096


class ProblemLog:
    """Logs problems with annotations, but not again at each event."""

    def __init__(self) -> None:
        self._logged: set[int] = set()  # hashes: keys and values are long

    def report(
        self, pod: str, container: str, problems: Iterable[AnnotationProblem]
    ) -> None:
        """Log those of *problems* that have not been logged yet.

        A bad value is logged once per pod, container and key. *pod* is
        ``namespace/name``.
        """
        for one in problems:
            logged = hash((pod, container, one.key, one.value))
            if logged in self._logged:
                continue
            if len(self._logged) >= _MOST_LOGGED:
                self._logged.clear()
            self._logged.add(logged)
            key, value, why = one.key, shortened(one.value, SHOWN), one.why
            if one.read:
                log.warning(
                    "annotation.misspelled",
                    pod=pod,
                    container=container,
                    key=key,
                    value=value,
                    why=why,
                )
            else:
                log.warning(
                    "annotation.ignored",
                    pod=pod,
                    container=container,
                    key=key,
                    value=value,
                    why=why,
                )
