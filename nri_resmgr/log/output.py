"""Set-up of structlog: format and destination; called once, by a program."""

from __future__ import annotations

import enum
import os
import re
import stat
import sys
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, Final

import structlog

from nri_resmgr.log import Logger, wrap_in
from nri_resmgr.log.destination import Destination, open_log_file
from nri_resmgr.log.levels import ALL, DEBUG, ERROR, INFO, LEVELS, WARNING, levels
from nri_resmgr.log.sinks import LogFile, Sink, Stream
from nri_resmgr.log.system_log import JOURNALD_SOCKET, SYSLOG_SOCKET, Journald, Syslog

_NULL_DEVICE: Final = os.makedev(1, 3)
_STDERR: Final = 2

_NO_FIELDS: Final[Mapping[str, object]] = {}

# Values with one of these are quoted, or they would be ambiguous.
_QUOTED: Final = re.compile("""[ ="']""")

_LEVEL: Final = len("exception")
_EVENT: Final = 30

log = Logger(__name__)


class LogFormat(enum.StrEnum):
    """The format of lines: text for people, JSON for programs."""

    TEXT = "text"
    JSON = "json"


def configure_logging(
    level: str = "info",
    log_format: LogFormat = LogFormat.TEXT,
    to: str = Destination.AUTO,
) -> None:
    """Log to standard error, or to the system's log where that is /dev/null.

    A runtime launches plugins with standard error on /dev/null, where lines would be
    lost.

    Args:
        level: One of `LEVELS`; lines below it are dropped. `levels` can change it.
        log_format: Text or JSON, a line each.
        to: A `Destination`, or the path of a file.

    Raises:
        UnusableLog: The file cannot be opened.
    """
    levels.set(ALL, level)
    write_to(open_sink(to), log_format, LEVELS[level])


def write_to(sink: Sink, log_format: LogFormat, least: int = DEBUG) -> None:
    """Configure structlog to write to *sink*.

    Args:
        sink: Takes the lines.
        log_format: Text or JSON, a line each.
        least: The lowest level of loggers made by structlog itself.
    """
    output = Output(sink)
    _outputs[:] = [output]
    processors: list[Any] = [structlog.processors.add_log_level]
    if not sink.has_clock:
        processors.append(structlog.processors.TimeStamper(fmt="iso"))
    render: Any
    if log_format is LogFormat.TEXT and isinstance(sink, Stream) and os.isatty(_STDERR):
        # Without this structlog uses rich where it is installed, which takes a second
        # for a traceback: half of a request's deadline.
        plain = structlog.dev.plain_traceback
        render = structlog.dev.ConsoleRenderer(exception_formatter=plain)
    else:
        processors.append(structlog.processors.format_exc_info)
        is_json = log_format is LogFormat.JSON
        json = structlog.processors.JSONRenderer(default=str)
        render = json if is_json else render_plain
    processors.append(_with_fields(render) if sink.has_fields else render)
    wrap_in(structlog.make_filtering_bound_logger(DEBUG))
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=lambda *_: output,
        cache_logger_on_first_use=True,
    )


def open_sink(to: str) -> Sink:
    """Open the destination *to*; see `configure_logging`."""
    match to:
        case Destination.AUTO:
            return _default_sink()
        case Destination.STDERR:
            return _stderr()
        case Destination.SYSLOG:
            return Syslog()
        case Destination.JOURNALD:
            return Journald()
        case path:
            return open_log_file(path)


def lost_lines() -> int:
    """Return the number of lines lost so far."""
    return sum(output.lost for output in _outputs)


class Output:
    """The logger at the end of structlog's processors.

    Attributes:
        lost: The number of lines that the sink dropped.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._unreported = 0
        self.lost = 0

    def debug(self, line: str, fields: Mapping[str, object] = _NO_FIELDS) -> None:
        """Write a line at debug."""
        self._write(DEBUG, line, fields)

    def info(self, line: str, fields: Mapping[str, object] = _NO_FIELDS) -> None:
        """Write a line at info."""
        self._write(INFO, line, fields)

    def warning(self, line: str, fields: Mapping[str, object] = _NO_FIELDS) -> None:
        """Write a line at warning."""
        self._write(WARNING, line, fields)

    def error(self, line: str, fields: Mapping[str, object] = _NO_FIELDS) -> None:
        """Write a line at error."""
        self._write(ERROR, line, fields)

    critical = fatal = exception = error
    warn = warning
    msg = log = info

    def _write(self, level: int, line: str, fields: Mapping[str, object]) -> None:
        if not self._sink.write(level, line, fields):
            self._unreported += 1
            self.lost += 1
        elif self._unreported:
            # Reset first: the line about lost ones comes through here as well.
            lines, self._unreported = self._unreported, 0
            log.warning("log.lines-lost", lines=lines)


_outputs: Final[list[Output]] = []


def render_plain(_: object, __: str, event: MutableMapping[str, Any]) -> str:
    """Return a line as structlog's console renders it, in a fraction of its time.

    The time counts: most lines are written between two requests.

    Args:
        event: The fields; tracebacks are texts already, under ``exception``.
    """
    stamp, level = event.pop("timestamp", ""), event.pop("level", "")
    name, trace = str(event.pop("event", "")), event.pop("exception", "")
    fields = " ".join([f"{key}={_shown(event[key])}" for key in sorted(event)])
    start = f"{stamp} " if stamp else ""
    line = f"{start}[{level:<{_LEVEL}}] {name:<{_EVENT}} {fields}".rstrip()
    return f"{line}\n{trace}" if trace else line


def _shown(value: object) -> str:
    if isinstance(value, str) and value.isprintable() and not _QUOTED.search(value):
        return value
    return repr(value)


def _with_fields(render: Callable[..., str]) -> Callable[..., Any]:
    def render_with_fields(
        logger: object, method: str, event: MutableMapping[str, object]
    ) -> tuple[tuple[str], dict[str, object]]:
        fields = {key: value for key, value in event.items() if key != "level"}
        return (render(logger, method, event),), {"fields": fields}

    return render_with_fields


def _default_sink() -> Sink:
    if _is_null_device(_STDERR):
        if Path(JOURNALD_SOCKET).exists():
            return Journald()
        if Path(SYSLOG_SOCKET).exists():
            return Syslog()
    return _stderr()


def _stderr() -> Sink:
    # Without standard error at the start, descriptor 2 may be another file by now.
    return LogFile(os.devnull) if sys.stderr is None else Stream(_STDERR)


def _is_null_device(descriptor: int) -> bool:
    try:
        facts = os.fstat(descriptor)
    except OSError:  # closed: as good as /dev/null
        return True
    return stat.S_ISCHR(facts.st_mode) and facts.st_rdev == _NULL_DEVICE
