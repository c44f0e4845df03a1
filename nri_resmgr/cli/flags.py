"""Flags, which environment variables can set as well, and those that commands share."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NoReturn

from nri_resmgr.daemon.defaults import DEFAULT_CONTROL_SOCKET

PREFIX: Final = "NRI_RESMGR_"

_BAD_INPUT: Final = 2  # the exit status

_DAY: Final = 86_400  # seconds

# The width where stdout is no terminal, as in shutil.
_COLUMNS: Final = 80


class Help(argparse.HelpFormatter):
    """Help as wide as the terminal; text of several lines keeps its lines.

    The width is not from shutil, as in argparse: argparse makes a formatter for each
    flag, with or without ``--help``, and shutil imports compression libraries, which
    takes 3 ms of a start.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_terminal_columns() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """An argument parser that reports a mistake in one sentence, without the usage."""

    def error(self, message: str) -> NoReturn:
        """End the process as for any other bad input."""
        self.exit(_BAD_INPUT, f"{self.prog}: {message}; see {self.prog} --help\n")


class Flags:
    """Adds flags to a parser, each with its variable ``NRI_RESMGR_*``.

    The command line has precedence over the environment, and the environment over
    the default. A value from the environment is checked like one from the command
    line.
    """

    def __init__(
        self, parser: argparse.ArgumentParser, environment: Mapping[str, str]
    ) -> None:
        self._parser = parser
        self._environment = environment

    def add(self, flag: str, *aliases: str, **how: Any) -> None:
        """Add a flag that takes a value; *how* is argparse's."""
        variable = variable_of(flag)
        if (value := self._environment.get(variable)) is not None:
            how["default"] = value
        how["help"] = f"{how['help']} [{variable}]"
        self._parser.add_argument(flag, *aliases, **how)

    def add_switch(self, flag: str, help_text: str) -> None:
        """Add a flag without a value; ``1``, ``true`` and ``yes`` set it."""
        variable = variable_of(flag)
        value = self._environment.get(variable, "").lower()
        if value not in ("", "0", "false", "no", "1", "true", "yes"):
            self._parser.error(f"{variable}={value!r}: 1 or 0 is needed")
        self._parser.add_argument(
            flag,
            action="store_true",
            default=value in ("1", "true", "yes"),
            help=f"{help_text} [{variable}]",
        )


def add_output(
    parser: argparse.ArgumentParser,
    *forms: str,
    help_text: str = "output format, default %(default)s",
) -> None:
    """Add ``-o``, the output format; the first one is the default."""
    parser.add_argument(
        "-o", "--output", choices=forms, default=forms[0], help=help_text
    )


def add_host_flags(flags: Flags) -> None:
    """Add the flags of commands that read the host's machine."""
    flags.add(
        "--host-root",
        default="/",
        metavar="PATH",
        help="folder where the host's /sys and /proc are mounted",
    )
    flags.add(
        "--memory-kinds",
        default="",
        metavar="NODES=KIND",
        help="memory technology of nodes that the host reports wrongly, "
        "such as '2-3=hbm 4=cxl'",
    )


def add_control_flag(flags: Flags) -> None:
    """Add the flag of the daemon and of its clients."""
    flags.add(
        "--control-socket",
        default=DEFAULT_CONTROL_SOCKET,
        metavar="PATH",
        help="path of the daemon's control socket; empty for none "
        f"({DEFAULT_CONTROL_SOCKET})",
    )


@cache
def _terminal_columns() -> int:
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


def process_environment() -> Mapping[str, str]:
    """Return the environment variables of this process."""
    return os.environ


def seconds(text: str) -> float:
    """Parse a flag's value as seconds: 0, or from 1 to a day."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if value != 0 and not 1 <= value <= _DAY:
        raise argparse.ArgumentTypeError(f"{text!r}: 0, or 1 to {_DAY} seconds")
    return value


def one_of(*words: str) -> Callable[[str], str]:
    """Return a flag's type that accepts only *words*.

    argparse checks ``choices`` on the command line only, not in defaults.
    """

    def check(text: str) -> str:
        if text not in words:
            known = ", ".join(words)
            raise argparse.ArgumentTypeError(f"{text!r} is not one of {known}")
        return text

    return check
