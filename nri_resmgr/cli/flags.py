"""Flags, which environment variables can set as well, and those that commands share."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NoReturn, Required, TypedDict, Unpack

import msgspec

from nri_resmgr.daemon.defaults import DEFAULT_CONTROL_SOCKET
from nri_resmgr.values.printable import printable

PREFIX: Final = "NRI_RESMGR_"

_BAD_INPUT: Final = 2  # the exit status

_DAY: Final = 86_400  # seconds

PICTURE: Final = "--picture"
"""The flag for a picture beside the answer."""

PAGE_SUFFIX: Final = ".html"
_SUFFIXES: Final = (".svg", PAGE_SUFFIX)

STDOUT: Final = "-"
"""In place of a file: standard output."""

_NONE: Final[Mapping[str, str]] = {}

# The width where stdout is no terminal, as in shutil.
_COLUMNS: Final = 80


class Help(argparse.HelpFormatter):
    """Help as wide as the terminal; text of several lines keeps its lines.

    The width is not from shutil, as in argparse: argparse makes a formatter for each
    flag, with or without ``--help``, and shutil imports compression libraries, which
    takes 3 ms of a start.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=terminal_columns() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


class FlagOptions(TypedDict, total=False):
    """Options of a flag, as argparse has them."""

    default: object
    help: Required[str]
    metavar: Required[str]
    type: Callable[[str], object]


class Parser(argparse.ArgumentParser):
    """An argument parser whose flags have variables ``NRI_RESMGR_*``.

    The command line has precedence over the environment, and the environment over
    the default. A value from the environment is checked like one from the command
    line. A mistake is reported in one sentence, without the usage.
    """

    # Any: argparse's own arguments, which `add_subparsers` passes as well.
    def __init__(self, *, environment: Mapping[str, str] = _NONE, **how: Any) -> None:
        super().__init__(formatter_class=Help, **how)
        self._environment = environment

    def error(self, message: str) -> NoReturn:
        """End the process as for any other bad input."""
        shown = printable(message)
        self.exit(_BAD_INPUT, f"{self.prog}: {shown}; see {self.prog} --help\n")

    def add_flag(self, flag: str, *aliases: str, **how: Unpack[FlagOptions]) -> None:
        """Add a flag that takes a value."""
        variable = variable_of(flag)
        if (value := self._environment.get(variable)) is not None:
            how["default"] = value
        how["help"] = f"{how['help']} [{variable}]"
        self.add_argument(flag, *aliases, **how)

    def add_switch(self, flag: str, help_text: str) -> None:
        """Add a flag without a value; ``1``, ``true`` and ``yes`` set it."""
        variable = variable_of(flag)
        value = self._environment.get(variable, "").lower()
        if value not in ("", "0", "false", "no", "1", "true", "yes"):
            self.error(f"{variable}={value!r}: 1 or 0 is needed")
        self.add_argument(
            flag,
            action="store_true",
            default=value in ("1", "true", "yes"),
            help=f"{help_text} [{variable}]",
        )


def add_picture_flag(parser: Parser, what: str, *, or_stdout: bool = False) -> None:
    """Add the flag for a picture beside the answer.

    Clients have it: who writes the picture is imported where one is asked for only.

    Args:
        parser: That of the command.
        what: What is drawn.
        or_stdout: Whether `STDOUT` is taken, too: a client may run in a container,
            where the user can read no file.
    """
    more = f"; {STDOUT} is standard output, as SVG and without the answer"
    parser.add_argument(
        PICTURE,
        type=_picture_or_stdout if or_stdout else _picture,
        metavar="FILE",
        help=f"file to draw {what} in, .svg or .html{more if or_stdout else ''}",
    )


def add_host_flags(parser: Parser) -> None:
    """Add the flags of commands that read the host's machine."""
    parser.add_flag(
        "--host-root",
        default="/",
        metavar="PATH",
        help="folder where the host's /sys and /proc are mounted",
    )
    parser.add_flag(
        "--memory-kinds",
        default="",
        metavar="NODES=KIND",
        help="memory technology of nodes that the host reports wrongly, "
        "such as '2-3=hbm 4=cxl'",
    )


def add_control_flag(parser: Parser) -> None:
    """Add the flag of the daemon and of its clients."""
    parser.add_flag(
        "--control-socket",
        default=DEFAULT_CONTROL_SOCKET,
        metavar="PATH",
        help="path of the daemon's control socket; empty for none "
        f"({DEFAULT_CONTROL_SOCKET})",
    )


def add_endpoint_flags(parser: Parser) -> None:
    """Add the flags of processes that serve metrics: the daemon and the agent."""
    parser.add_flag(
        "--http-endpoint",
        default="",
        metavar="[ADDRESS]:PORT",
        help="address that serves metrics without authentication, localhost unless "
        "it is given; off by default",
    )
    parser.add_flag(
        "--health-endpoint",
        default="",
        metavar="[ADDRESS]:PORT",
        help="address that serves liveness and readiness for probes, with its own "
        "limit of connections; off by default",
    )


def add_log_flags(parser: Parser) -> None:
    """Add the flags of processes that log: the daemon and the agent."""
    parser.add_flag(
        "--log-level",
        type=one_of("debug", "info", "warning", "error"),
        default="info",
        metavar="LEVEL",
        help="lowest level to log: debug, info, warning or error",
    )
    parser.add_flag(
        "--log-format",
        type=one_of("text", "json"),
        default="text",
        metavar="FORMAT",
        help="log format: text or json",
    )
    parser.add_flag(
        "--log-debug",
        default="",
        metavar="PATTERNS",
        help="components to log at debug level, such as 'app.*,stub'",
    )
    parser.add_flag(
        "--log-to",
        default="auto",
        metavar="WHERE",
        help="auto, stderr, syslog, journald, or a file; auto is standard error, or "
        "the system's log if that is /dev/null",
    )


@cache
def terminal_columns() -> int:
    """Return the width of the terminal, or of `COLUMNS`; 80 where neither is known."""
    try:
        columns = int(os.environ.get("COLUMNS", "0"))
        return columns or os.get_terminal_size(sys.stdout.fileno()).columns or _COLUMNS
    except (AttributeError, OSError, ValueError):  # no stdout, no terminal, no number
        return _COLUMNS


def variable_of(flag: str) -> str:
    """Return the environment variable of a flag.

    >>> variable_of("--nri-socket")
    'NRI_RESMGR_NRI_SOCKET'
    """
    return PREFIX + flag.strip("-").upper().replace("-", "_")


def seconds(text: str) -> float:
    """Parse a flag's value as seconds: 0, or from 1 to a day."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if value != 0 and not 1 <= value <= _DAY:
        raise argparse.ArgumentTypeError(f"{text!r}: 0, or 1 to {_DAY} seconds")
    return value


def _picture(text: str) -> str:
    if not text.endswith(_SUFFIXES):
        expected = " or ".join(_SUFFIXES)
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected a name that ends in {expected}"
        )
    return text


def _picture_or_stdout(text: str) -> str:
    return text if text == STDOUT else _picture(text)


def inner_path(text: str) -> str:
    """Parse a flag's value as the absolute path of a folder in containers."""
    parts = text.split("/")[1:]
    if not text.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected an absolute path without . and .., such as /.resources"
        )
    return text


class OneOf(msgspec.Struct, frozen=True):
    """A flag's type that accepts only some words.

    argparse checks ``choices`` on the command line only, not in defaults.
    """

    words: tuple[str, ...]

    def __call__(self, text: str) -> str:
        """Return the text, if it is one of them."""
        if text not in self.words:
            known = ", ".join(self.words)
            raise argparse.ArgumentTypeError(f"{text!r} is not one of {known}")
        return text


def one_of(*words: str) -> OneOf:
    """Return a flag's type that accepts only *words*."""
    return OneOf(words)
