"""Labels and annotations that are read once somebody looks at them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from nri_resmgr.policy.events import (
    ContainerSpec,
    Created,
    Event,
    Synchronized,
    Updated,
)


class UnreadTexts(Mapping[str, str]):
    """What a container or its pod is labelled with; few configurations ask for it.

    To read it takes as long as a sixth of a decision, and the runtime waits.

    Args:
        read: Reads all of it. It keeps what it reads from until then.
    """

    __slots__ = ("_read", "_texts")

    def __init__(self, read: Callable[[], Mapping[str, str]]) -> None:
        self._read: Callable[[], Mapping[str, str]] | None = read
        self._texts: Mapping[str, str] = {}

    def __getitem__(self, key: str) -> str:
        return self.read()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.read())

    def __len__(self) -> int:
        return len(self.read())

    def __repr__(self) -> str:
        return repr(dict(self))

    def read(self) -> Mapping[str, str]:
        """Read it now, unless it was read before."""
        if self._read is not None:
            self._texts, self._read = self._read(), None
        return self._texts


def read_texts(event: Event) -> None:
    """Read what an event left unread: until then it keeps the pod and the container."""
    specs: tuple[ContainerSpec, ...] = ()
    if isinstance(event, (Created, Updated)):
        specs = (event.spec,)
    elif isinstance(event, Synchronized):
        specs = event.specs
    for spec in specs:
        for texts in (spec.labels, spec.tags, spec.pod_labels, spec.pod_tags):
            if isinstance(texts, UnreadTexts):
                texts.read()
