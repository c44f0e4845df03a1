"""Log lines by structlog, which is imported when the first one is written."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from nri_resmgr.log.levels import DEBUG, ERROR, INFO, WARNING, levels

# What `configure_later` was given; empty once done.
_configuration: Final[list[Callable[[], None]]] = []

# The class for loggers that judge by `levels` what is logged; ours comes from `output`.
_unfiltered: Final[list[Any]] = []


class Logger:
    """A module's logger, with the four levels that we use.

    structlog imports its tracebacks, its console and its copy of logging: 54 million
    instructions, a tenth of the start of a plugin that has nothing to say before the
    runtime answers. What it is told goes to structlog at once, in order. A line that
    `levels` turns off costs 0.2 microseconds and does not touch structlog.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._component = levels.component(name)
        self._structlog: Any = None

    @property
    def is_debugged(self) -> bool:
        """Whether debug is on; ask before gathering much for a line."""
        return self._component.least <= DEBUG

    def debug(self, event: str, **fields: object) -> None:
        """Log for developers."""
        if self._component.least <= DEBUG:
            self._loaded().debug(event, **fields)

    def info(self, event: str, **fields: object) -> None:
        """Log the normal course."""
        if self._component.least <= INFO:
            self._loaded().info(event, **fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log what somebody should look at."""
        if self._component.least <= WARNING:
            self._loaded().warning(event, **fields)

    def error(self, event: str, **fields: object) -> None:
        """Log what somebody must act on."""
        if self._component.least <= ERROR:
            self._loaded().error(event, **fields)

    def _loaded(self) -> Any:
        if self._structlog is None:
            load()
            import structlog

            self._structlog = structlog.wrap_logger(
                None,
                wrapper_class=_unfiltered[-1] if _unfiltered else None,
                logger_factory_args=(self._name,),
            )
        return self._structlog


def configure_later(configure: Callable[..., None], *values: object) -> None:
    """Have *configure* called with *values* before the first line is written."""
    _configuration[:] = [partial(configure, *values)]


def wrap_in(kind: type) -> None:
    """Have loggers that are used from now on pass all lines that `levels` lets through.

    Args:
        kind: A class of structlog's that drops nothing.
    """
    _unfiltered[:] = [kind]


def load() -> None:
    """Import structlog and configure it, if that is still to be done.

    For moments in which there is nothing else to do.
    """
    import structlog  # noqa: F401 - for what it leaves in sys.modules

    while _configuration:
        _configuration.pop()()
