"""Parses, renders and compares the text of ``schemata`` files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

# By resource, then by the id of a cache or domain.
Schemata = Mapping[str, Mapping[int, int]]

_CACHES: Final = ("L2", "L3")
_BANDWIDTH: Final = "MB"
_DECIMAL: Final = (_BANDWIDTH, "SMBA")


def parse_schemata(text: str) -> Schemata:
    r"""Parse the schemata of a group.

    Unknown resources, and those without values in the setup of a pseudo-locked region,
    are skipped.

    Raises:
        ValueError: A number is invalid.

    Source:
        Linux resctrl.rst, "Schemata files": names and numbers may be padded.

    >>> parse_schemata("    MB:0= 100;1=  50\n    L3:0=00ff;1=ff00\n")
    {'MB': {0: 100, 1: 50}, 'L3': {0: 255, 1: 65280}}
    """
    found = {}
    for line in text.splitlines():
        name, _, domains = line.strip().partition(":")
        if "=" in domains and (name in _DECIMAL or cache_of(name)):
            base = 10 if name in _DECIMAL else 16
            found[name] = dict(_domains(domains, base))
    return found


def render_schemata(schemata: Schemata) -> str:
    r"""Render schemata as a text that can be written at once.

    >>> render_schemata({"L3": {1: 0xf0, 0: 0xf}, "MB": {0: 50}})
    'L3:0=f;1=f0\nMB:0=50\n'
    """
    lines = []
    for name, values in schemata.items():
        form = "d" if name in _DECIMAL else "x"
        texts = (f"{key}={value:{form}}" for key, value in sorted(values.items()))
        lines.append(f"{name}:{';'.join(texts)}\n")
    return "".join(lines)


def merged(old: Schemata, new: Schemata) -> Schemata:
    """Return the schemata of a group after *new*, which may be partial, is written."""
    return {
        name: {**old.get(name, {}), **new.get(name, {})}
        for name in dict.fromkeys((*old, *new))
    }


def rounded(schemata: Schemata, step: int) -> Schemata:
    """Round bandwidths up, as the kernel does.

    >>> rounded({"MB": {0: 33}}, 10)
    {'MB': {0: 40}}
    """
    return {
        name: {key: -(-value // step) * step for key, value in values.items()}
        if name == _BANDWIDTH
        else values
        for name, values in schemata.items()
    }


def cache_of(resource: str) -> str:
    """Return the cache of a resource; empty for other resources.

    >>> cache_of("L3CODE"), cache_of("MB")
    ('L3', '')
    """
    cache = resource.removesuffix("CODE").removesuffix("DATA")
    return cache if cache in _CACHES else ""


def overlap(one: Schemata, other: Schemata) -> tuple[str, int] | None:
    """Return the first resource and cache id with common bits; None without.

    Code and data use the same cache, so their bits are compared with each other.
    """
    for name, masks in one.items():
        for theirs, other_masks in other.items():
            if cache_of(name) and cache_of(name) == cache_of(theirs):
                for key in masks.keys() & other_masks.keys():
                    if masks[key] & other_masks[key]:
                        return name, key
    return None


def _domains(text: str, base: int) -> Iterator[tuple[int, int]]:
    for domain in text.split(";"):
        key, _, value = domain.partition("=")
        yield int(key), int(value, base)
