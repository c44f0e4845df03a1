"""Loggers; structlog is imported when the first line is written.

`levels` has the levels of components; `output`, `destination`, `sinks` and `system_log`
write lines. Flags and SIGUSR1 are in `nri_resmgr.daemon.log_setup`, the line of a
decision in `nri_resmgr.app.observing.decision_log`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from nri_resmgr.log.levels import DEBUG, ERROR, INFO, WARNING, levels

# The call of `configure_later`; empty once done.
_configuration: Final[list[Callable[[], None]]] = []

# The class of loggers for lines that `levels` lets through; set by `output`.
_unfiltered: Final[list[Any]] = []


class Logger:
    """A module's logger, with four levels.

    The import of structlog takes 54 million instructions, a tenth of the start of a
    plugin that logs nothing before the runtime answers; so the first line imports it.
    A line that `levels` turns off costs 0.2 µs and does not touch structlog.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._component = levels.component(name)
        self._structlog: Any = None

    @property
    def is_debugged(self) -> bool:
        """Whether debug is on; check before computing costly fields."""
        return self._component.least <= DEBUG

    def debug(self, event: str, **fields: object) -> None:
        """Log for developers."""
        if self._component.least <= DEBUG:
            self._loaded().debug(event, **fields)

    def info(self, event: str, **fields: object) -> None:
        """Log normal operation."""
        if self._component.least <= INFO:
            self._loaded().info(event, **fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log what an operator should look at."""
        if self._component.least <= WARNING:
            self._loaded().warning(event, **fields)

    def error(self, event: str, **fields: object) -> None:
        """Log what an operator must act on."""
        if self._component.least <= ERROR:
            self._loaded().error(event, **fields)

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
        _configuration.pop()()
