"""Log lines by structlog, which is imported when the first one is written."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

# What `configure_later` was given; empty once done.
_configuration: Final[list[Callable[[], None]]] = []


class Logger:
    """A module's logger, with the four levels that we use.

    structlog imports its tracebacks, its console and its copy of logging: 54 million
    instructions, a tenth of the start of a plugin that has nothing to say before the
    runtime answers. What it is told goes to structlog at once, in order.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._structlog: Any = None

    def debug(self, event: str, **fields: object) -> None:
        """Log for developers."""
        self._loaded().debug(event, **fields)

    def info(self, event: str, **fields: object) -> None:
        """Log the normal course."""
        self._loaded().info(event, **fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log what somebody should look at."""
        self._loaded().warning(event, **fields)

    def error(self, event: str, **fields: object) -> None:
        """Log what somebody must act on."""
        self._loaded().error(event, **fields)

    def _loaded(self) -> Any:
        if self._structlog is None:
            load()
            import structlog

            self._structlog = structlog.get_logger(self._name)
        return self._structlog


def configure_later(configure: Callable[..., None], *values: object) -> None:
    """Have *configure* called with *values* before the first line is written."""
    _configuration[:] = [partial(configure, *values)]


def load() -> None:
    """Import structlog and configure it, if that is still to be done.

    For moments in which there is nothing else to do.
    """
    import structlog  # noqa: F401 - for what it leaves in sys.modules

    while _configuration:
        _configuration.pop()()
