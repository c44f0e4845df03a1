"""The order of writing, where the kernel takes one value only beside another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

_PAIRS: Final = {
    "scaling_min_freq": "scaling_max_freq",
    "min_freq_khz": "max_freq_khz",
}
_GOVERNOR: Final = "scaling_governor"
_PREFERENCE: Final = "energy_performance_preference"
_MAXIMA: Final = {top: bottom for bottom, top in _PAIRS.items()}


def in_order(
    targets: Mapping[str, str], present: Callable[[str], str | None]
) -> Iterator[tuple[str, str]]:
    """Yield paths and texts so that no minimum is ever above its maximum.

    A governor goes before the preference of its policy: beside the governor
    performance the kernel takes no other preference.

    Args:
        targets: Path to text; in this order, but for such pairs, which come where
            their first one is.
        present: Reads the value that a file has now.
    """
    done: set[str] = set()
    for path in targets:
        governor = _governor(path)
        if governor in targets and governor not in done:
            done.add(governor)
            yield governor, targets[governor]
        if path in done:
            continue
        pair = _pair(path)
        if pair is None or not all(one in targets for one in pair):
            done.add(path)
            yield path, targets[path]
            continue
        bottom, top = pair
        # Upwards the maximum has to go first, downwards the minimum.
        is_up = _number(targets[top]) > _number(present(top))
        for one in (top, bottom) if is_up else (bottom, top):
            yield one, targets[one]
        done |= {bottom, top}


def _governor(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/{_GOVERNOR}" if name == _PREFERENCE else ""


def _pair(path: str) -> tuple[str, str] | None:
    folder, _, name = path.rpartition("/")
    if name in _PAIRS:
        return path, f"{folder}/{_PAIRS[name]}"
    if name in _MAXIMA:
        return f"{folder}/{_MAXIMA[name]}", path
    return None


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0
