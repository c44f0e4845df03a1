"""The text of ``schemata`` files as numbers, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

# By resource, then by the id of a cache or domain.
Schemata = Mapping[str, Mapping[int, int]]

_CACHES: Final = ("L2", "L3")
_BANDWIDTH: Final = "MB"
_DECIMAL: Final = (_BANDWIDTH, "SMBA")


def parse_schemata(text: str) -> Schemata:
    r"""Read what the kernel or a plan says of a group.

    Resources that we do not know, and those that a pseudo-locked region has yet to
    set up, are left out.

    Raises:
        ValueError: A number is none.

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
    r"""Write what `parse_schemata` reads, for one write.

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
    """Return what a group holds after a write, which need not name everything."""
    return {
        name: {**old.get(name, {}), **new.get(name, {})}
        for name in dict.fromkeys((*old, *new))
    }


def rounded(schemata: Schemata, step: int) -> Schemata:
    """Return what the kernel makes of bandwidths, which it rounds up.

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
    """Return the cache that a resource is of; empty for one that is no cache.

    >>> cache_of("L3CODE"), cache_of("MB")
    ('L3', '')
    """
    cache = resource.removesuffix("CODE").removesuffix("DATA")
    return cache if cache in _CACHES else ""


def overlap(one: Schemata, other: Schemata) -> tuple[str, int] | None:
    """Return a resource and a cache id whose bits both may fill; None without.

    Code and data are in the same cache: the bits of one meet those of the other.
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
