"""The metrics that are served, of which polled ones are computed once in a period."""

from __future__ import annotations

from collections.abc import Iterable

from nri_resmgr.app.metrics.groups import is_chosen
from nri_resmgr.app.metrics.text import Metric, Series, render


class ServedMetrics:
    """Writes the series of chosen metrics; call `begin` before each rendering."""

    def __init__(self) -> None:
        self._enabled: tuple[str, ...] | None = None
        self._polled: tuple[str, ...] = ()
        self._until = 0.0
        self._kept: dict[str, str] = {}
        self._choices: dict[str, tuple[bool, bool]] = {}

    def begin(
        self,
        enabled: tuple[str, ...] | None,
        polled: tuple[str, ...],
        period: float,
        now: float,
    ) -> None:
        """Begin a rendering.

        Args:
            enabled: Globs of metrics that are served; None for all.
            polled: Globs of metrics that keep their values for a period.
            period: Seconds.
            now: Monotonic seconds.
        """
        if (enabled, polled) != (self._enabled, self._polled):
            self._enabled, self._polled = enabled, polled
            self._choices.clear()
            self._until = now
        if now >= self._until:
            self._kept.clear()
            self._until = now + period

    def text(self, series: Series) -> str:
        """Write a series, or return its text of this period; empty if not served."""
        name = series.metric.name
        is_served, is_polled = self._chosen(name)
        if not is_served:
            return ""
        if (kept := self._kept.get(name)) is not None:
            return kept
        found = render([series])
        if is_polled:
            self._kept[name] = found
        return found

    def without_reading(self, metrics: Iterable[Metric]) -> str | None:
        """Return the texts of metrics, or None if their values are needed."""
        names = [one.name for one in metrics if self._chosen(one.name)[0]]
        if any(name not in self._kept for name in names):
            return None
        return "".join(self._kept[name] for name in names)

    def _chosen(self, name: str) -> tuple[bool, bool]:
        if (known := self._choices.get(name)) is None:
            is_served = self._enabled is None or is_chosen(name, self._enabled)
            known = self._choices[name] = is_served, is_chosen(name, self._polled)
        return known
