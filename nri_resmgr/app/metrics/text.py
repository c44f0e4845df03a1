"""Writes metrics in Prometheus' text exposition format 0.0.4."""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, Final, TypeAlias

import msgspec

from nri_resmgr.values.printable import printable

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

# Seconds. An answer takes a millisecond; the runtime waits for two seconds.
BOUNDS: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.0),
)
_NAMES: Final = (*map(repr, BOUNDS), "+Inf")


class Kind(enum.StrEnum):
    """Prometheus' type of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(msgspec.Struct, frozen=True):
    """The name, type, help text and labels of a metric.

    Attributes:
        kind: A counter never falls while the daemon runs.
        help: A noun phrase.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


class Histogram:
    """Counts of durations in buckets; see `BOUNDS`."""

    __slots__ = ("_counts", "_sum")

    def __init__(self) -> None:
        self._counts = [0] * len(_NAMES)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration."""
        self._counts[bisect_left(BOUNDS, seconds)] += 1
        self._sum += seconds

    @property
    def counts(self) -> tuple[int, ...]:
        """Return the durations in each bucket; the last one is above all `BOUNDS`."""
        return tuple(self._counts)

    @property
    def total(self) -> float:
        """Return the sum of all durations, in seconds."""
        return self._sum

    def lines(self, name: str, labels: str) -> Iterator[str]:
        """Write all lines; *labels* is in Prometheus' format and not empty."""
        sums = list(accumulate(self._counts))
        for bound, count in zip(_NAMES, sums, strict=True):
            yield f'{name}_bucket{{{labels},le="{bound}"}} {count}'
        yield f"{name}_sum{{{labels}}} {self._sum!r}"
        yield f"{name}_count{{{labels}}} {sums[-1]}"


Value: TypeAlias = int | float | Histogram


class Series(msgspec.Struct, frozen=True):
    """A metric with its values.

    Attributes:
        values: By the values of its labels, in the order of the labels; may be empty.
    """

    metric: Metric
    # Any: Mapping is invariant in its keys, which are tuples of str of one length.
    values: Mapping[Any, Value]


def single(metric: Metric, value: float) -> Series:
    """Return the series of a metric without labels."""
    return Series(metric, {(): value})


def render(found: Iterable[Series]) -> str:
    """Write series as text; metrics without values are left out.

    Source:
        Prometheus, docs/instrumenting/exposition_formats.md.
    """
    return "".join(f"{line}\n" for series in found for line in _lines(series))


def _lines(series: Series) -> Iterator[str]:
    metric = series.metric
    if series.values:
        yield f"# HELP {metric.name} {_escaped(metric.help)}"
        yield f"# TYPE {metric.name} {metric.kind}"
    for values, value in series.values.items():
        pairs = zip(metric.labels, values, strict=True)
        labels = ",".join(f'{name}="{_quoted(text)}"' for name, text in pairs)
        if isinstance(value, Histogram):
            yield from value.lines(metric.name, labels)
        else:
            yield f"{metric.name}{f'{{{labels}}}' if labels else ''} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    # Printable also because a lone surrogate could not be sent.
    return _escaped(printable(text, "\n")).replace('"', r"\"")
