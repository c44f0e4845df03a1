"""Loggers; structlog is imported when the first line is written.

`levels` has the levels of components, `line_style` the form of lines; `output`,
`destination`, `line_thread`, `sinks` and `system_log` write lines. Flags and SIGUSR1
are in `nri_resmgr.daemon.log_setup`, the line of a decision in
`nri_resmgr.app.observing.decision_log`. `copies` has lines for a second reader.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from nri_resmgr.log.levels import DEBUG, ERROR, INFO, WARNING, levels
from nri_resmgr.log.line_style import line_style

# The call of `configure_later`; empty once done.
_configuration: Final[list[Callable[[], None]]] = []

# The class of loggers for lines that `levels` lets through; set by `output`.
_unfiltered: Final[list[type]] = []


class LostLines:
    """Counts lines that could not be written.

    Attributes:
        total: Their number.
        unreported: The number of those that no line of the log is about yet.
        why: Why the last one could not be written.
    """

    def __init__(self) -> None:
        self.total = self.unreported = 0
        self.why = ""
        self._guard = threading.RLock()  # re-entrant: a destructor may log

    def note(self, why: str) -> None:
        """Count one."""
        with self._guard:
            self.total += 1
            self.unreported += 1
            self.why = why

    def take(self) -> int:
        """Return the number of unreported lines, which are reported now."""
        with self._guard:
            lines, self.unreported = self.unreported, 0
        return lines


lost_lines: Final = LostLines()


class Logger:
    """A module's logger, with four levels.

    The import of structlog takes 54 million instructions, a tenth of the start of a
    plugin that logs nothing before the runtime answers; so the first line imports it.
    A line that `levels` turns off costs 0.2 µs and does not touch structlog.

    No method raises: a line for which there is no memory or descriptor is lost, and
    what it is about goes on. See `lost_lines`.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._component = levels.component(name)
        self._structlog: Any = None

    @property
    def is_debugged(self) -> bool:
        """True if debug is on; check before computing costly fields."""
        return self._component.least <= DEBUG

    def debug(self, event: str, **fields: object) -> None:
        """Log for developers."""
        if self._component.least <= DEBUG:
            self._write("debug", event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Log normal operation."""
        if self._component.least <= INFO:
            self._write("info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log what an operator should look at."""
        if self._component.least <= WARNING:
            self._write("warning", event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Log what an operator must act on."""
        if self._component.least <= ERROR:
            self._write("error", event, fields)

    def _write(self, method: str, event: str, fields: Mapping[str, object]) -> None:
        if line_style.also:
            line_style.also(self._component.name, method, event, fields)
        if line_style.source:
            fields = {"component": self._component.name, **fields}
        if line_style.context:
            fields = {**line_style.context, **fields}
        try:
            getattr(self._loaded(), method)(event, **fields)
        except Exception as error:  # noqa: BLE001 - see the class; an import without memory fails by any of them
            # The name of the class needs no memory. With it, a mistake of ours is
            # in the log, too, if another line gets there.
            lost_lines.note(type(error).__name__)

    def _loaded(self) -> Any:
        if self._structlog is None:
            load()
            import structlog  # late: see the class

            self._structlog = structlog.wrap_logger(
                None,
                wrapper_class=_unfiltered[-1] if _unfiltered else None,
                logger_factory_args=(self._name,),
            )
        return self._structlog


def configure_later(configure: Callable[..., None], *values: object) -> None:
    """Call *configure* with *values* before the first line is written."""
    _configuration[:] = [partial(configure, *values)]


def wrap_in(kind: type) -> None:
    """Set the class of loggers that are used for the first time from now on.

    Args:
        kind: A class of structlog that drops no lines; `levels` has done so.
    """
    _unfiltered[:] = [kind]


def load() -> None:
    """Import structlog and configure it, if not done yet.

    Call it when the process is idle, so that the first line is not delayed.
    """
    import structlog  # noqa: F401 - late: see `Logger`

    while _configuration:
        configure = _configuration.pop()  # first: it may log
        try:
            configure()
        except BaseException:
            _configuration.append(configure)  # such as without a free descriptor
            raise
