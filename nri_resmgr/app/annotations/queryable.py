"""Limits the labels and annotations that expressions can query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

PRIVATE: Final = frozenset(
    (
        # The manifest as applied, with all values of its environment.
        "kubectl.kubernetes.io/last-applied-configuration",
        # The kubelet's own copy of a command with its arguments.
        "io.kubernetes.container.preStopHandler",
    )
)
"""Keys of annotations that may hold secrets."""

# Expressions query words. The texts are stored and checkpointed once per container, and
# a pod has room for 256 KiB of annotations, and for more of labels.
LONGEST: Final = 512
"""Characters of a value."""

MOST: Final = 16 << 10
"""Characters of all keys and values."""


def queryable(texts: Mapping[str, str]) -> Mapping[str, str]:
    """Drop private and long values, and the last keys where all are too long together.

    Returns:
        The same object where nothing is dropped.
    """
    size = 0
    for key, value in texts.items():
        size += len(key) + len(value)
        if len(value) > LONGEST or key in PRIVATE:
            break
    else:
        if size <= MOST:
            return texts
    return MappingProxyType(dict(_few(texts)))


def _few(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    size = 0
    for key, value in sorted(texts.items()):
        if len(value) > LONGEST or key in PRIVATE:
            continue
        size += len(key) + len(value)
        if size > MOST:
            return
        yield key, value
