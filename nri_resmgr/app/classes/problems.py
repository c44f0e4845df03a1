"""Problems with classes: counted, logged once each, and kept for `status`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from nri_resmgr.classes.choice import ClassChoice
from nri_resmgr.log import Logger

log = Logger(__name__)


class ClassProblems:
    """Problems with classes of one kind.

    A subject is a container by its title, which has slashes, or a word without any.

    Args:
        kind: ``rdt`` or ``blockio``.

    Attributes:
        dropped: How many containers went without the class that their place or QoS
            class gives them.
        failures: How often something could not be done on the host.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.dropped = self.failures = 0
        self._present: dict[str, str] = {}
        self._abandoned = ""
        self._logged: Counter[ClassChoice] = Counter()

    @property
    def present(self) -> Mapping[str, str]:
        """The problems there are now: a sentence by subject."""
        if self._abandoned:
            return self._present | {"service": self._abandoned}
        return self._present

    def drop(self, choice: ClassChoice, title: str, why: str) -> None:
        """Note that a container goes without a class that it did not ask for."""
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
        """Note that something could not be done; logged again for another reason."""
        self.failures += 1
        if self._present.get(subject) != why:
            self._present[subject] = why
            log.error("classes.failed", kind=self.kind, subject=subject, why=why)

    def abandon(self, why: str) -> None:
        """Note that such classes are not applied until the daemon is restarted."""
        self.failures += 1
        self._abandoned = why

    def clear(self, subject: str) -> None:
        """Note that a problem is over."""
        if self._present.pop(subject, None) is not None:
            log.info("classes.recovered", kind=self.kind, subject=subject)

    def keep_only(self, titles: Collection[str]) -> None:
        """Forget what was wrong with containers that are gone."""
        for subject in tuple(self._present):
            if "/" in subject and subject not in titles:
                self._present.pop(subject, None)

    def forget(self) -> None:
        """Forget all problems: another configuration is in force."""
        self._present.clear()
        self._logged.clear()
