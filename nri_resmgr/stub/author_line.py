"""The line of the plugin's author to which an error leads, for the log.

Most mistakes are found by the SDK: in a builder that the author's line has called, or
in the result of a handler after it returned. Frames of the SDK would hide that line.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

import msgspec

from nri_proto.errors import MessageTooLarge
from nri_resmgr.stub.errors import ReplyError

# Packages whose frames are not the author's.
_OURS: Final = ("nri_resmgr.stub", "nri_proto", "google")

# What the SDK raises for a mistake of the author's; any other error may be its own.
_MISTAKES: Final = (ReplyError, TypeError, MessageTooLarge)


class Blame(msgspec.Struct, frozen=True):
    """Where an error comes from.

    Attributes:
        at: ``file:line``: the author's last line in the traceback, and none of a
            library that it has called; if there is none, the handler's first. "" if it
            is unknown.
        shown: The error if its traceback helps, with the author's frames only where
            the SDK has raised it for a mistake; None if *at* says all.
    """

    at: str
    shown: Exception | None


def blame(error: Exception, handler: Callable[..., Any] | None) -> Blame:
    """Find the author's line, and cut the traceback of *error* down to such lines."""
    first = last = authors = None
    trace = error.__traceback__
    while trace is not None:
        if not _is_ours(trace):
            first, last = first or trace, trace
            if authors is None or _is_beside(trace, first):
                authors = trace
        trace = trace.tb_next
    is_mistake = isinstance(error, _MISTAKES)
    if first is None or last is None or authors is None:
        at = line_of(handler) if handler is not None else ""
        return Blame(at, None if is_mistake else error)
    if is_mistake:
        last.tb_next = None
    at = f"{_file_of(authors)}:{authors.tb_lineno}"
    return Blame(at, error.with_traceback(first))


def line_of(function: Callable[..., Any]) -> str:
    """Return where *function* is defined, as ``file:line``; "" if that is unknown."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else ""


def _is_ours(trace: TracebackType) -> bool:
    module = str(trace.tb_frame.f_globals.get("__name__"))
    return any(module == one or module.startswith(f"{one}.") for one in _OURS)


def _is_beside(trace: TracebackType, first: TracebackType) -> bool:
    """Return whether a frame is of the author, as the first one is, or of a library."""
    folder = _file_of(first).rpartition("/")[0]
    inside = _file_of(trace).removeprefix(f"{folder}/")
    # An environment may be in the author's folder.
    return inside != _file_of(trace) and "/site-packages/" not in inside


def _file_of(trace: TracebackType) -> str:
    return trace.tb_frame.f_code.co_filename
