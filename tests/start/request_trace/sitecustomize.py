"""Writes down which files a daemon opens and what it imports, and for which request.

Python itself imports this before the daemon; see `tests.start.test_request_files`.
"""

from __future__ import annotations

import os
import sys
import threading
from types import FrameType

# What they call is on the path of a request, before its reply if it has one.
_ANSWERING = frozenset(("Runner.start", "Runner._run"))
_EVENTS = frozenset(("open", "os.listdir", "os.scandir", "os.mkdir", "import"))


def _method() -> str:
    """Return the request that is being answered; a dash for none."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - as documented
    while frame is not None:
        if frame.f_code.co_qualname in _ANSWERING:
            return str(frame.f_locals["call"].method)
        frame = frame.f_back
    return "-"


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event in _EVENTS:
        thread = threading.get_native_id()
        line = f"{_method()} {event} {arguments[0]} {thread}\n"
        os.write(_file, line.encode())


if _path := os.environ.get("REQUEST_TRACE"):
    _file = os.open(_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    sys.addaudithook(_note)
