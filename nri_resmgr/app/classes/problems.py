"""Problems with classes: counted, logged once each, and shown by `status`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

from nri_resmgr.classes.choice import ClassChoice
from nri_resmgr.log import Logger

log = Logger(__name__)

# As long as the longest pause of the supervisor: see docs/faults.md.
RETRY: Final = 10.0  # seconds until what has failed is tried again


class ClassProblems:
    """Problems with classes of one kind.

    The subject of a problem is the title of a container, which has slashes, or a word
    without slashes, such as ``groups``.

    Attributes:
        dropped: Number of containers without the class of their balloon type or QoS
            class.
        failures: Number of failed operations on the host.
        retry: Seconds until what has failed is tried again, at most.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.dropped = self.failures = 0
        self.retry = RETRY
        self._present: dict[str, str] = {}
        self._fault = ""
        self._logged: Counter[ClassChoice] = Counter()

    @property
    def present(self) -> Mapping[str, str]:
        """The present problems: a sentence by subject."""
        if self._fault:
            return self._present | {"service": self._fault}
        return self._present

    def period(self, usual: float) -> float:
        """Return the seconds until the next comparison: it repeats what has failed."""
        return min(usual, self.retry) if self.present else usual

    def drop(self, choice: ClassChoice, title: str, why: str) -> None:
        """Count a container without its class, which no annotation asks for."""
        self.dropped += 1
        self._logged[choice] += 1
        if self._logged[choice] == 1:
            log.warning(
                "classes.dropped",
                kind=self.kind,
                name=choice.name,
                by=choice.origin.value,
                title=title,
                why=why,
            )

    def fail(self, subject: str, why: str) -> None:
        """Count a failed operation; log it if the subject or the reason is new."""
        self.failures += 1
        if self._present.get(subject) != why:
            self._present[subject] = why
            log.error("classes.failed", kind=self.kind, subject=subject, why=why)

    def note_fault(self, why: str) -> None:
        """Count a fault that stops all such operations; empty once it has passed."""
        self.failures += bool(why)
        self._fault = why

    def clear(self, subject: str) -> None:
        """Remove a problem, and log that it is solved."""
        if self._present.pop(subject, None) is not None:
            log.info("classes.recovered", kind=self.kind, subject=subject)

    def keep_only(self, titles: Collection[str]) -> None:
        """Remove the problems of containers other than *titles*."""
        for subject in tuple(self._present):
            if "/" in subject and subject not in titles:
                self._present.pop(subject, None)

    def forget(self) -> None:
        """Remove all problems: another configuration is in force."""
        # `_fault` stays: a configuration does not start the reconciler again.
        self._present.clear()
        self._logged.clear()
