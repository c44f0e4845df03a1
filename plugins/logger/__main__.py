"""Print every message between the runtime and this plugin, both ways."""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import os
import queue
import signal
import threading
from datetime import UTC, datetime
from typing import Any, Final, Literal, TextIO

import msgspec
import structlog
import yaml
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from nri_proto import ALL_EVENTS, nri_pb2, parse_mask
from nri_resmgr.log.output import configure_logging
from nri_resmgr.sdk.settings import BadSetting, InvalidField, Settings
from nri_resmgr.stub import (
    HANDLER_NAMES,
    Configuration,
    PluginFlags,
    StubOptions,
    Tapped,
    add_flags,
    serve,
)
from nri_resmgr.stub.transport import SOCKET_VARIABLE
from nri_resmgr.values.printable import LINES, printable, printable_json

log = structlog.get_logger(__name__)

DEFAULT_INDEX: Final = "99"  # last: sees a container with the changes of other plugins

# The standard output of a plugin that the runtime launched is /dev/null.
LAUNCHED_LOG_FILE: Final = "/var/log/nri-logger.log"

# Messages that may wait for a slow disk; more are dropped, to bound memory.
MAX_WAITING: Final = 10_000

# Keys of the document by which flags set them as well.
_FLAGS: Final = {
    "logFile": "log-file",
    "events": "events",
    "namespaces": "namespaces",
    "names": "names",
    "format": "format",
}


class LoggerSettings(Settings, frozen=True):
    """Filter, format and destination; an empty `log_file` is standard output."""

    log_file: str = ""
    events: tuple[str, ...] = ("all",)
    namespaces: tuple[str, ...] = ("*",)
    names: tuple[str, ...] = ("*",)
    format: Literal["yaml", "json"] = "yaml"

    def __post_init__(self) -> None:
        try:
            parse_mask(",".join(self.events))
        except ValueError as error:
            raise InvalidField("events", str(error)) from None

    @property
    def mask(self) -> int:
        """The events to subscribe to."""
        return parse_mask(",".join(self.events)) or ALL_EVENTS

    def selects(self, pod: nri_pb2.PodSandbox, *names: str) -> bool:
        """Return whether to print messages about *pod* that have one of *names*."""
        return _matches(self.namespaces, pod.namespace) and _matches(self.names, *names)


def _matches(globs: tuple[str, ...], *names: str) -> bool:
    return not globs or any(
        fnmatch.fnmatchcase(name, glob) for glob in globs for name in names
    )


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
            BadSetting: The file cannot be opened.
        """
        if settings == self._settings:
            return
        path = settings.log_file
        try:
            output = open(path or 1, "a", encoding="utf-8", closefd=bool(path))  # noqa: SIM115 - the thread closes it
        except OSError as error:
            why = f"cannot write {path}: {error.strerror}"
            raise BadSetting("$.logFile", why) from None
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
        self._settings = LoggerSettings.read(configuration.text, self._initial)
        self._printer.start(self._settings)
        return self._settings.mask

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
    parser.add_argument(
        "--events",
        type=_words,
        help="events, such as pod,createcontainer; default all",
    )
    parser.add_argument(
        "--namespaces",
        type=_words,
        metavar="GLOBS",
        help="of pods, such as kube-*,web; default all",
    )
    parser.add_argument(
        "--names",
        type=_words,
        metavar="GLOBS",
        help="of pods or containers; default all",
    )
    parser.add_argument("--format", help="yaml or json; default yaml")
    parser.add_argument(
        "--log-file", dest="logFile", help="file to write to; default standard output"
    )
    add_flags(parser)
    return parser


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


def main() -> None:
    """Run the plugin."""
    parser = _parser()
    options = parser.parse_args()
    configure_logging("warning")
    launched = SOCKET_VARIABLE in os.environ
    # Empty text is as good as no flag.
    flags = {key: vars(options)[key] or None for key in _FLAGS}
    printer = Printer()
    try:
        settings = LoggerSettings.of(
            flags, LoggerSettings(LAUNCHED_LOG_FILE if launched else "")
        )
        if not launched:
            printer.start(settings)
    except BadSetting as bad:
        key = bad.path.removeprefix("$.")
        parser.error(f"--{_FLAGS[key]}: {bad.why}")
    logger = MessageLogger(settings, printer)
    try:
        serve(
            logger,
            index=DEFAULT_INDEX,
            options=StubOptions(on_message=logger.take),
            flags=PluginFlags.of(options),
        )
    finally:
        printer.finish()


if __name__ == "__main__":
    main()
