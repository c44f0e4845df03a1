"""Print every message between the runtime and this plugin, both ways."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import fnmatch
import json
import os
import queue
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self, TextIO

import msgspec
import structlog
import yaml
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from nri_proto import ALL_EVENTS, nri_pb2, parse_mask
from nri_resmgr.log.output import configure_logging
from nri_resmgr.stub import (
    HANDLER_NAMES,
    Configuration,
    InputError,
    StubOptions,
    serve,
)
from nri_resmgr.stub.identity import INDEX_VARIABLE
from nri_resmgr.stub.observer import Tapped
from nri_resmgr.stub.transport import DEFAULT_SOCKET, SOCKET_VARIABLE
from nri_resmgr.values.printable import LINES, printable, printable_json

log = structlog.get_logger(__name__)

DEFAULT_INDEX: Final = "99"  # last: sees a container with the changes of other plugins

# The standard output of a plugin that the runtime launched is /dev/null.
LAUNCHED_LOG_FILE: Final = "/var/log/nri-logger.log"

# Messages that may wait for a slow disk; more are dropped, to bound memory.
MAX_WAITING: Final = 10_000


@dataclass(eq=False)
class InvalidSetting(InputError):
    """The setting at *path* of the document is not valid."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


def _words(value: object) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise ValueError(f"expected a list of strings, got {value!r}")
    return tuple(part.strip() for part in parts)


def _format(value: object) -> str:
    if value in ("yaml", "json"):
        return str(value)
    raise ValueError(f"expected yaml or json, got {value!r}")


def _path(value: object) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(f"expected a path, got {value!r}")


# Keys of the document, each with its field of `LoggerSettings` and its reader.
_READERS: Final[Mapping[str, tuple[str, Callable[[object], object]]]] = {
    "logFile": ("log_file", _path),
    "events": (
        "events",
        lambda value: parse_mask(",".join(_words(value))) or ALL_EVENTS,
    ),
    "namespaces": ("namespaces", lambda value: _words(value) or ("*",)),
    "names": ("names", lambda value: _words(value) or ("*",)),
    "format": ("format", _format),
}


class LoggerSettings(msgspec.Struct, frozen=True):
    """Filter, format and destination; an empty `log_file` is standard output."""

    log_file: str = ""
    events: int = ALL_EVENTS
    namespaces: tuple[str, ...] = ("*",)
    names: tuple[str, ...] = ("*",)
    format: str = "yaml"

    def changed_by(self, document: object) -> Self:
        """Return these settings with the changes of a parsed document.

        Raises:
            InvalidSetting: The first problem found.
        """
        if not isinstance(document, dict):
            raise InvalidSetting("$", "expected keys and values")
        changes: dict[str, Any] = {}
        for key, value in document.items():
            if key not in _READERS:
                close = difflib.get_close_matches(str(key), _READERS, n=1)
                hint = f", did you mean {close[0]}?" if close else ""
                raise InvalidSetting(f"$.{key}", f"unknown key{hint}")
            name, read = _READERS[key]
            try:
                changes[name] = read(value)
            except ValueError as error:
                raise InvalidSetting(f"$.{key}", str(error)) from None
        return msgspec.structs.replace(self, **changes)

    def changed_by_text(self, text: str) -> Self:
        """Return these settings with the changes of a YAML document.

        Raises:
            InvalidSetting: The first problem found.
        """
        try:
            document = yaml.load(text, Loader=yaml.CSafeLoader)
        except yaml.YAMLError as error:
            raise InvalidSetting("$", " ".join(str(error).split())) from None
        return self if document is None else self.changed_by(document)

    def selects(self, pod: nri_pb2.PodSandbox, *names: str) -> bool:
        """Return whether to print messages about *pod* that have one of *names*."""
        return _matches(self.namespaces, pod.namespace) and _matches(self.names, *names)


def _matches(globs: tuple[str, ...], *names: str) -> bool:
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs for name in names)


def formatted(tapped: Tapped, time: datetime, style: str) -> str:
    """Format one message: a YAML document, or a line of JSON."""
    entry: dict[str, Any] = {
        "time": time.isoformat(timespec="milliseconds"),
        "from": tapped.sender.value,
        "request" if tapped.request is None else "reply": tapped.method,
    }
    if isinstance(tapped.body, Message):
        # The standard JSON mapping, which protobuf can parse again.
        entry["message"] = MessageToDict(tapped.body, preserving_proto_field_name=True)
    else:
        entry["error"] = str(tapped.body)
    if style == "json":
        return printable_json(json.dumps(entry, ensure_ascii=False)) + "\n"
    text = _yaml(entry, allow_unicode=True)
    # The escapes of YAML keep the meaning, and it has them for all of Unicode or none.
    is_safe = printable(text, LINES) == text
    return f"---\n{text if is_safe else _yaml(entry, allow_unicode=False)}"


def _yaml(entry: dict[str, Any], *, allow_unicode: bool) -> str:
    return str(
        yaml.dump(
            entry,
            Dumper=yaml.CSafeDumper,
            sort_keys=False,
            allow_unicode=allow_unicode,
        )
    )


class Printer:
    """Writes messages in a separate thread.

    Printing the Synchronize of a large node takes a second, and a disk may stall. The
    runtime, which disconnects late plugins, must not wait for that.
    """

    def __init__(self) -> None:
        self._waiting: queue.Queue[tuple[datetime, Tapped] | None]
        self._waiting = queue.Queue(MAX_WAITING)
        self._settings: LoggerSettings | None = None
        self._thread: threading.Thread | None = None

    def put(self, tapped: Tapped) -> None:
        """Queue a message, also before `start`; never blocks."""
        try:
            self._waiting.put_nowait((datetime.now(UTC), tapped))
        except queue.Full:
            log.warning("message.dropped", method=tapped.method)

    def start(self, settings: LoggerSettings) -> None:
        """Start to write queued messages; start again if the settings changed.

        Raises:
            InvalidSetting: The file cannot be opened.
        """
        if settings == self._settings:
            return
        path = settings.log_file
        try:
            output = open(path or 1, "a", encoding="utf-8", closefd=bool(path))  # noqa: SIM115 - the thread closes it
        except OSError as error:
            why = f"cannot write {path}: {error.strerror}"
            raise InvalidSetting("$.logFile", why) from None
        self.finish()
        self._settings = settings
        self._thread = threading.Thread(target=self._write, args=(output, settings))
        self._thread.start()

    def finish(self) -> None:
        """Write all queued messages and stop."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()
            self._thread = None

    def _write(self, output: TextIO, settings: LoggerSettings) -> None:
        with contextlib.suppress(OSError), output:
            while (item := self._waiting.get()) is not None:
                time, tapped = item
                try:
                    output.write(formatted(tapped, time, settings.format))
                    output.flush()
                except BrokenPipeError:  # the reader has ended, as in `logger | head`
                    os.kill(os.getpid(), signal.SIGTERM)
                    return  # a second signal would come after its handler was removed
                except OSError as error:  # a full disk may have space again later
                    log.error("message.lost", why=error.strerror)


class MessageLogger:
    """Prints the messages of its session; its replies are empty."""

    def __init__(self, settings: LoggerSettings, printer: Printer) -> None:
        self._initial = self._settings = settings
        self._printer = printer
        for name in HANDLER_NAMES:
            if not hasattr(self, name):
                setattr(self, name, lambda *_: None)

    def configure(self, configuration: Configuration) -> int:
        """Apply the drop-in file; subscribe to the events in it."""
        self._settings = self._initial.changed_by_text(configuration.text)
        self._printer.start(self._settings)
        return self._settings.events

    def take(self, tapped: Tapped) -> None:
        """Print a message of the session if the settings select it."""
        about = tapped.body if tapped.request is None else tapped.request
        if tapped.body is about and isinstance(about, nri_pb2.SynchronizeRequest):
            tapped = msgspec.structs.replace(tapped, body=self._selected_part(about))
        if self._selects(about):
            self._printer.put(tapped)

    def _selects(self, about: object) -> bool:
        pod = getattr(about, "pod", None)
        container = getattr(about, "container", None)
        names = () if container is None else (container.name,)
        return pod is None or self._settings.selects(pod, pod.name, *names)

    def _selected_part(
        self, request: nri_pb2.SynchronizeRequest
    ) -> nri_pb2.SynchronizeRequest:
        selects = self._settings.selects
        pods = {pod.id: pod for pod in request.pods}
        part = nri_pb2.SynchronizeRequest(more=request.more)
        part.pods.extend(pod for pod in request.pods if selects(pod, pod.name))
        for container in request.containers:
            pod = pods.get(container.pod_sandbox_id)
            # On a large node the pod may be in another message: print its containers.
            if pod is None or selects(pod, pod.name, container.name):
                part.containers.append(container)
        return part


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("logger", description=__doc__)
    parser.add_argument("--name", help="name to register with; default logger")
    parser.add_argument(
        "--index", help=f"two digits, the order among plugins; default {DEFAULT_INDEX}"
    )
    parser.add_argument(
        "--socket",
        metavar="PATH",
        help=f"socket of the runtime; default {DEFAULT_SOCKET}",
    )
    parser.add_argument(
        "--events", help="events, such as pod,createcontainer; default all"
    )
    parser.add_argument(
        "--namespaces", metavar="GLOBS", help="of pods, such as kube-*,web; default all"
    )
    parser.add_argument(
        "--names", metavar="GLOBS", help="of pods or containers; default all"
    )
    parser.add_argument("--format", help="yaml or json; default yaml")
    parser.add_argument(
        "--log-file", dest="logFile", help="file to write to; default standard output"
    )
    return parser


def main() -> None:
    """Run the plugin."""
    parser = _parser()
    options = parser.parse_args()
    configure_logging("warning")
    launched = SOCKET_VARIABLE in os.environ
    flags = {key: vars(options)[key] for key in _READERS if vars(options)[key]}
    printer = Printer()
    try:
        settings = LoggerSettings(LAUNCHED_LOG_FILE if launched else "").changed_by(
            flags
        )
        if not launched:
            printer.start(settings)
    except InvalidSetting as bad:
        name, _ = _READERS[bad.path.removeprefix("$.")]
        parser.error(f"--{name.replace('_', '-')}: {bad.why}")
    logger = MessageLogger(settings, printer)
    try:
        serve(
            logger,
            name=options.name,
            index=options.index
            or (None if INDEX_VARIABLE in os.environ else DEFAULT_INDEX),
            socket=options.socket,
            options=StubOptions(on_message=logger.take),
        )
    finally:
        printer.finish()


if __name__ == "__main__":
    main()
