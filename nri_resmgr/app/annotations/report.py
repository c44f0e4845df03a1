"""Warnings about annotations, each of them once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from nri_resmgr.app.annotations.errors import SHOWN
from nri_resmgr.app.annotations.read import Problem
from nri_resmgr.log import Logger
from nri_resmgr.values.shorten import shortened

log = Logger(__name__)

# Enough for a busy node. A warning that comes again is no harm, a list that grows
# for as long as the daemon runs is one.
_REMEMBERED: Final = 4096


class ProblemLog:
    """Logs what is wrong with annotations, but not again at each event."""

    def __init__(self) -> None:
        self._told: set[tuple[object, ...]] = set()

    def report(self, pod: str, container: str, problems: Iterable[Problem]) -> None:
        """Log what is new of *problems*.

        Those of a value once per pod, container and key; a key without effect once.

        Args:
            pod: ``namespace/name``.
            container: Its name in the pod.
            problems: From a `Reading`.
        """
        for one in problems:
            stem = one.key.partition("/")[0]
            # Of the value a number: values may be as long as a book.
            told = (pod, container, one.key, hash(one.value))
            news = (stem,) if one.pending else told
            if news in self._told:
                continue
            if len(self._told) >= _REMEMBERED:
                self._told.clear()
            self._told.add(news)
            name = "annotation.not-in-force" if one.pending else "annotation.ignored"
            log.warning(
                name,
                pod=pod,
                container=container,
                key=one.key,
                value=shortened(one.value, SHOWN),
                why=one.why,
            )
