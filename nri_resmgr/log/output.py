"""Set-up of structlog: format and destination; called once, by a program."""

from __future__ import annotations

import atexit
import enum
import os
import re
import sys
from collections.abc import Callable, Mapping, MutableMapping
from functools import partialmethod
from typing import Any, Final

import structlog

from nri_resmgr.log import Logger, lost_lines, wrap_in
from nri_resmgr.log.destination import Destination, open_log_file
from nri_resmgr.log.last_words import is_stderr_lost, system_log
from nri_resmgr.log.levels import ALL, DEBUG, ERROR, INFO, LEVELS, WARNING, levels
from nri_resmgr.log.line_style import line_style
from nri_resmgr.log.line_thread import LAST, LineThread
from nri_resmgr.log.sinks import LogFile, Sink, Stream
from nri_resmgr.log.system_log import Journald, Syslog
from nri_resmgr.values.printable import LINES, printable, printable_json

_STDERR: Final = 2

_NO_FIELDS: Final[Mapping[str, object]] = {}

# Values with one of these are quoted, or they would be ambiguous.
_QUOTED: Final = re.compile("""[ ="']""")

_JSON: Final = structlog.processors.JSONRenderer(default=str)

_NOT_TAKEN: Final = "the destination is full, or has no reader"
_HANGS: Final = "the destination hangs"

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
    lost. A thread writes, so that no reader or disk that hangs delays a request; the
    program's end waits for its lines, two seconds at most.

    Args:
        level: One of `LEVELS`; lines below it are dropped. `levels` can change it.
        log_format: Text or JSON, a line each.
        to: A `Destination`, or the path of a file.

    Raises:
        UnusableLog: The file cannot be opened.
    """
    levels.set(ALL, level)
    output = write_to(open_sink(to), log_format, LEVELS[level], in_thread=True)
    if output.thread is not None:
        atexit.register(output.thread.finish, LAST)


def write_to(
    sink: Sink,
    log_format: LogFormat,
    least: int = DEBUG,
    *,
    in_thread: bool = False,
) -> Output:
    """Configure structlog to write to *sink*; return the output.

    Args:
        sink: Takes the lines.
        log_format: Text or JSON, a line each.
        least: The lowest level of loggers made by structlog itself.
        in_thread: Whether a thread writes, which the program has to `finish`.
    """
    output = Output(sink, in_thread=in_thread)
    processors: list[Any] = [structlog.processors.add_log_level]
    if not sink.has_clock:
        processors.append(structlog.processors.TimeStamper(fmt="iso"))
    render: Any
    if log_format is LogFormat.TEXT and isinstance(sink, Stream) and os.isatty(_STDERR):
        # Without this structlog uses rich where it is installed, which takes a second
        # for a traceback: half of a request's deadline.
        plain = structlog.dev.plain_traceback
        processors += [structlog.processors.format_exc_info, make_printable]
        render = structlog.dev.ConsoleRenderer(exception_formatter=plain)
    else:
        processors.append(structlog.processors.format_exc_info)
        render = render_json if log_format is LogFormat.JSON else render_plain
    processors.append(_with_fields(render) if sink.has_fields else render)
    wrap_in(structlog.make_filtering_bound_logger(DEBUG))
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=lambda *_: output,
        cache_logger_on_first_use=True,
    )
    return output


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


class Output:
    """The logger at the end of structlog's processors.

    Args:
        sink: Takes the lines.
        in_thread: Whether a thread writes, so that no sink blocks the program.

    Attributes:
        thread: The thread that writes; None if the caller does.
    """

    def __init__(self, sink: Sink, *, in_thread: bool = False) -> None:
        self._sink = sink
        self.thread = LineThread(sink.wait, self._send) if in_thread else None

    def _write(
        self, level: int, line: str, fields: Mapping[str, object] = _NO_FIELDS
    ) -> None:
        if self.thread is None:
            self._send(level, line, fields)
        elif not self.thread.put(level, line, fields):
            lost_lines.note(_HANGS)

    def _send(self, level: int, line: str, fields: Mapping[str, object]) -> None:
        if not self._sink.write(level, line, fields):
            lost_lines.note(_NOT_TAKEN)
        # Taken first: the line about lost ones comes through here as well.
        elif lost_lines.unreported and (lines := lost_lines.take()):
            log.warning("log.lines-lost", lines=lines, why=lost_lines.why)

    debug = partialmethod(_write, DEBUG)
    info = partialmethod(_write, INFO)
    warning = partialmethod(_write, WARNING)
    error = partialmethod(_write, ERROR)
    critical = fatal = exception = error
    warn = warning
    msg = log = info


def render_plain(_: object, __: str, event: MutableMapping[str, Any]) -> str:
    """Return a line as structlog's console renders it, in a fraction of its time.

    The time counts: most lines are written between two requests.

    Args:
        event: The fields; tracebacks are texts already, under ``exception``.
    """
    stamp, level = event.pop("timestamp", ""), event.pop("level", "")
    name, trace = str(event.pop("event", "")), event.pop("exception", "")
    fields = plain_fields(event)
    start = f"{stamp} " if stamp else ""
    head = f"{start}[{level:<{_LEVEL}}] " if line_style.headers else ""
    line = printable(f"{head}{name:<{_EVENT}} {fields}".rstrip())
    return f"{line}\n{_indented(trace)}" if trace else line


def plain_fields(fields: Mapping[str, object]) -> str:
    """Return fields as a line of text has them; not yet printable."""
    return " ".join([f"{key}={_shown(fields[key])}" for key in sorted(fields)])


def render_json(logger: object, name: str, event: MutableMapping[str, Any]) -> str:
    """Return a line as an object of JSON."""
    return printable_json(str(_JSON(logger, name, event)))


def make_printable(
    _: object, __: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Make texts printable for structlog's console, which writes them as they are.

    Its lines have colours, so that afterwards would be too late. Values of other types
    are written by ``repr``, which escapes the same characters.
    """
    trace = event.pop("exception", "")
    made = {
        printable(key): printable(value) if isinstance(value, str) else value
        for key, value in event.items()
    }
    return made | {"exception": _indented(trace)} if trace else made


def _indented(trace: str) -> str:
    """Make a traceback printable; no line of it looks like a line of the log."""
    return "\n".join(f"  {printable(line)}" for line in trace.split("\n"))


def _shown(value: object) -> str:
    if isinstance(value, str) and value.isprintable() and not _QUOTED.search(value):
        return value
    return repr(value)


def _with_fields(render: Callable[..., str]) -> Callable[..., Any]:
    def render_with_fields(
        logger: object, method: str, event: MutableMapping[str, object]
    ) -> tuple[tuple[str], dict[str, object]]:
        fields: dict[str, object] = {
            key: printable(str(value), LINES if key == "exception" else "")
            for key, value in event.items()
            if key != "level"
        }
        return (render(logger, method, event),), {"fields": fields}

    return render_with_fields


def _default_sink() -> Sink:
    return (system_log() if is_stderr_lost() else None) or _stderr()


def _stderr() -> Sink:
    # Without standard error at the start, descriptor 2 may be another file by now.
    return LogFile(os.devnull) if sys.stderr is None else Stream(_STDERR)
