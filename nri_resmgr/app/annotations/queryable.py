"""Limits the labels and annotations that expressions can query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from heapq import nsmallest
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

# Expressions query words. The texts are kept as long as their container, and written
# into checkpoints, while a pod has room for 256 KiB of annotations and more of labels.
LONGEST: Final = 512
"""Characters of a value."""

MOST: Final = 16 << 10
"""Bytes of all keys and values in memory, as `memory_of` counts them."""

# Without it, thousands of keys of three letters would take a megabyte.
_ENTRY: Final = 128  # bytes of a key and its value besides their characters

_MOST_KEYS: Final = MOST // _ENTRY

# Python stores all characters of a text in the width of the widest one.
_WIDEST: Final = 4  # bytes

# The API server's limit: a prefix of 253 characters, a slash, a name of 63.
_LONGEST_KEY: Final = 317

# Containers of a pod come within seconds of each other, and share its texts: these take
# 128 * MOST, that is 2 MiB, at most.
_SHARED_TEXTS: Final = 128

# All pods of a cluster have some ten keys in common.
_SHARED_KEYS: Final = 1024

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


def queryable(texts: Mapping[str, str]) -> Mapping[str, str]:
    """Drop private and long values, and the last keys where there is too much of all.

    Returns:
        The rest in the order of the keys; recent equal results are the same object.
    """
    return _shared(tuple(_few(texts))) if texts else _NONE


@lru_cache(maxsize=_SHARED_TEXTS)
def _shared(texts: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return MappingProxyType({_shared_key(key): value for key, value in texts})


@lru_cache(maxsize=_SHARED_KEYS)
def _shared_key(key: str) -> str:
    # Not `sys.intern`: Python 3.12 never frees what it has interned.
    return key


def memory_of(key: str, value: str) -> int:
    """Return about how many bytes of memory an entry of a map takes at most."""
    size = len(key) if key.isascii() else _WIDEST * len(key)
    size += len(value) if value.isascii() else _WIDEST * len(value)
    return size + _ENTRY


def _few(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    size = 0
    # Not all keys of a large map at once.
    keys = sorted(texts) if len(texts) <= _MOST_KEYS else nsmallest(_MOST_KEYS, texts)
    for key in keys:
        value = texts[key]
        if len(value) > LONGEST or len(key) > _LONGEST_KEY or key in PRIVATE:
            continue
        size += memory_of(key, value)
        if size > MOST:
            return
        yield key, value
