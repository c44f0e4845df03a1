"""Where log lines go and what they look like; called once, by a program."""

from __future__ import annotations

import enum
import os
import stat
import sys
from pathlib import Path
from typing import Final

import structlog

from nri_resmgr.log.syslog import SYSLOG_SOCKET, SyslogLogger

_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}
LEVELS: Final = tuple(_LEVELS)

_NULL_DEVICE: Final = os.makedev(1, 3)


class LogFormat(enum.StrEnum):
    """How a line is written: for people or for programs."""

    TEXT = "text"
    JSON = "json"


def configure_logging(
    level: str = "info", log_format: LogFormat = LogFormat.TEXT
) -> None:
    """Log to standard error, or to syslog where a runtime took that away.

    A runtime launches plugins with standard error on /dev/null, so what they say
    there is lost.

    Args:
        level: One of `LEVELS`; lines below it are not made.
        log_format: Text or JSON, a line each.
    """
    to_syslog = _is_null_device(2) and Path(SYSLOG_SOCKET).exists()
    processors: list[structlog.typing.Processor] = [structlog.processors.add_log_level]
    if not to_syslog:
        processors.append(structlog.processors.TimeStamper(fmt="iso"))
    if log_format is LogFormat.JSON:
        processors.append(structlog.processors.format_exc_info)
        processors.append(structlog.processors.JSONRenderer())
    else:
        colors = not to_syslog and sys.stderr.isatty()
        # Where rich is installed, its tracebacks take a second: half a deadline.
        plain = structlog.dev.plain_traceback
        processors.append(
            structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)
        )
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=(
            SyslogLogger.factory()
            if to_syslog
            else structlog.WriteLoggerFactory(file=sys.stderr)
        ),
        cache_logger_on_first_use=True,
    )


def _is_null_device(descriptor: int) -> bool:
    try:
        facts = os.fstat(descriptor)
    except OSError:  # closed: as good as /dev/null
        return True
    return stat.S_ISCHR(facts.st_mode) and facts.st_rdev == _NULL_DEVICE
