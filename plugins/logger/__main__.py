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
from datetime import UTC, datetime
from typing import Any, Final, Self, TextIO

import attrs
import msgspec
import structlog
import yaml
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from nri_proto import ALL_EVENTS, nri_pb2, parse_mask
from nri_resmgr.log.output import configure_logging
from nri_resmgr.stub import HANDLER_NAMES, Configuration, StubOptions, serve
from nri_resmgr.stub.identity import INDEX_VARIABLE
from nri_resmgr.stub.observer import Tapped
from nri_resmgr.stub.transport import DEFAULT_SOCKET, SOCKET_VARIABLE
from nri_resmgr.values.errors import InputError

log = structlog.get_logger(__name__)

DEFAULT_INDEX: Final = "99"  # last: sees what the other plugins made of a container

# The standard output of a plugin that the runtime launched is /dev/null.
LAUNCHED_LOG_FILE: Final = "/var/log/nri-logger.log"

# Messages that wait for a slow disk; more are dropped, so that memory is bounded.
MOST_WAITING: Final = 10_000


@attrs.define(eq=False)
class BadSetting(InputError):
    """A setting is not what it should be; the path tells which."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


def _words(value: object) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise ValueError(f"a list of texts is needed, not {value!r}")
    return tuple(part.strip() for part in parts)


def _format(value: object) -> str:
    if value in ("yaml", "json"):
        return str(value)
    raise ValueError(f"yaml or json is needed, not {value!r}")


def _path(value: object) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(f"a path is needed, not {value!r}")


# Keys of a document with the field of `Settings` that each one sets.
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


@attrs.frozen
class Settings:
    """What to print, how, and where; an empty `log_file` is standard output."""

    log_file: str = ""
    events: int = ALL_EVENTS
    namespaces: tuple[str, ...] = ("*",)
    names: tuple[str, ...] = ("*",)
    format: str = "yaml"

    def changed_by(self, document: object) -> Self:
        """Return these settings with those of a parsed document over them.

        Raises:
            BadSetting: The first problem met.
        """
        if not isinstance(document, dict):
            raise BadSetting("$", "keys and values are needed")
        changes: dict[str, Any] = {}
        for key, value in document.items():
            if key not in _READERS:
                close = difflib.get_close_matches(str(key), _READERS, n=1)
                hint = f", did you mean {close[0]}?" if close else ""
                raise BadSetting(f"$.{key}", f"unknown key{hint}")
            name, read = _READERS[key]
            try:
                changes[name] = read(value)
            except ValueError as error:
                raise BadSetting(f"$.{key}", str(error)) from None
        return attrs.evolve(self, **changes)

    def changed_by_text(self, text: str) -> Self:
        """Do as `changed_by` with YAML; an empty document changes nothing."""
        try:
            document = yaml.load(text, Loader=yaml.CSafeLoader)
        except yaml.YAMLError as error:
            raise BadSetting("$", " ".join(str(error).split())) from None
        return self if document is None else self.changed_by(document)

    def wants(self, pod: nri_pb2.PodSandbox, *names: str) -> bool:
        """Tell whether to print what concerns *pod*, and goes by one of *names*."""
        return _matches(self.namespaces, pod.namespace) and _matches(self.names, *names)


def _matches(globs: tuple[str, ...], *names: str) -> bool:
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs for name in names)


def spelt(tapped: Tapped, time: datetime, style: str) -> str:
    """Write one message: a YAML document, or a line of JSON."""
    entry: dict[str, Any] = {
        "time": time.isoformat(timespec="milliseconds"),
        "from": tapped.sender.value,
        "request" if tapped.request is None else "reply": tapped.method,
    }
    if isinstance(tapped.body, Message):
        # The standard mapping: protobuf can read it back.
        entry["message"] = MessageToDict(tapped.body, preserving_proto_field_name=True)
    else:
        entry["error"] = str(tapped.body)
    if style == "json":
        return json.dumps(entry, ensure_ascii=False) + "\n"
    return "---\n" + str(
        yaml.dump(entry, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
    )


class Printer:
    """Writes in a thread of its own.

    Synchronize of a large node takes a second to print, and a disk may stall: the
    runtime, which throws late plugins out, must not wait for that.
    """

    def __init__(self) -> None:
        self._waiting: queue.Queue[tuple[datetime, Tapped] | None]
        self._waiting = queue.Queue(MOST_WAITING)
        self._settings: Settings | None = None
        self._thread: threading.Thread | None = None

    def put(self, tapped: Tapped) -> None:
        """Take a message, before `start` too; never blocks."""
        try:
            self._waiting.put_nowait((datetime.now(UTC), tapped))
        except queue.Full:
            log.warning("message.dropped", method=tapped.method)

    def start(self, settings: Settings) -> None:
        """Write all that was put and will be; again only with other settings.

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
        """Wait until all is written."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()
            self._thread = None

    def _write(self, output: TextIO, settings: Settings) -> None:
        with contextlib.suppress(OSError), output:
            while (item := self._waiting.get()) is not None:
                time, tapped = item
                try:
                    output.write(spelt(tapped, time, settings.format))
                    output.flush()
                except BrokenPipeError:  # nobody reads on: `logger | head`
                    os.kill(os.getpid(), signal.SIGTERM)
                    return  # a second signal would come after its handler has gone
                except OSError as error:  # a full disk may have room again later
                    log.error("message.lost", why=error.strerror)


class Logger:
    """Answers everything with nothing; what it prints comes from the tap."""

    def __init__(self, settings: Settings, printer: Printer) -> None:
        self._told = self._settings = settings
        self._printer = printer
        for name in HANDLER_NAMES:
            if not hasattr(self, name):
                setattr(self, name, lambda *_: None)

    def configure(self, configuration: Configuration) -> int:
        """Take the drop-in file; subscribe to the events it names."""
        self._settings = self._told.changed_by_text(configuration.text)
        self._printer.start(self._settings)
        return self._settings.events

    def take(self, tapped: Tapped) -> None:
        """Take a message from the tap."""
        about = tapped.body if tapped.request is None else tapped.request
        if tapped.body is about and isinstance(about, nri_pb2.SynchronizeRequest):
            tapped = msgspec.structs.replace(tapped, body=self._wanted_part(about))
        if self._wants(about):
            self._printer.put(tapped)

    def _wants(self, about: object) -> bool:
        pod = getattr(about, "pod", None)
        container = getattr(about, "container", None)
        names = () if container is None else (container.name,)
        return pod is None or self._settings.wants(pod, pod.name, *names)

    def _wanted_part(
        self, request: nri_pb2.SynchronizeRequest
    ) -> nri_pb2.SynchronizeRequest:
        wants, pods = self._settings.wants, {pod.id: pod for pod in request.pods}
        part = nri_pb2.SynchronizeRequest(more=request.more)
        part.pods.extend(pod for pod in request.pods if wants(pod, pod.name))
        for container in request.containers:
            pod = pods.get(container.pod_sandbox_id)
            # A node told in parts may tell the pod in another part.
            if pod is None or wants(pod, pod.name, container.name):
                part.containers.append(container)
        return part


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("logger", description=__doc__)
    parser.add_argument("--name", help="as which to register; default logger")
    parser.add_argument("--index", help=f"two digits; default {DEFAULT_INDEX}")
    parser.add_argument("--socket", metavar="PATH", help=f"default {DEFAULT_SOCKET}")
    parser.add_argument("--events", help="such as pod,createcontainer; default all")
    parser.add_argument("--namespaces", metavar="GLOBS", help="such as kube-*,web")
    parser.add_argument("--names", metavar="GLOBS", help="of pods or containers")
    parser.add_argument("--format", help="yaml, the default, or json")
    parser.add_argument("--log-file", dest="logFile", help="default standard output")
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
        settings = Settings(LAUNCHED_LOG_FILE if launched else "").changed_by(flags)
        if not launched:
            printer.start(settings)
    except BadSetting as bad:
        name, _ = _READERS[bad.path.removeprefix("$.")]
        parser.error(f"--{name.replace('_', '-')}: {bad.why}")
    logger = Logger(settings, printer)
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
