"""Flags that can also come from the environment."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NoReturn, Protocol

PREFIX: Final = "NRI_RESMGR_"

_BAD_INPUT: Final = 2  # the exit status

_DAY: Final = 86_400  # seconds

# Where nobody knows, as shutil has it.
_COLUMNS: Final = 80


class Commands(Protocol):
    """What argparse returns for subcommands; its class has no public name."""

    def add_parser(self, name: str, **how: Any) -> argparse.ArgumentParser:
        """Add a subcommand."""


class Help(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal, without asking shutil.

    argparse makes a formatter for each flag, with or without ``--help``, and shutil
    imports libraries that compress: 3 ms of a start.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_terminal_columns() - 2)


class Parser(argparse.ArgumentParser):
    """Tells a mistake in one sentence, without the usage above it."""

    def error(self, message: str) -> NoReturn:
        """End the process as for any other bad input."""
        self.exit(
            _BAD_INPUT, f"{self.prog}: {message}; {self.prog} --help tells more\n"
        )


class Flags:
    """Adds flags to a parser, each with its variable ``NRI_RESMGR_*``.

    The command line goes before the environment, and that before the default. A
    value from the environment is checked like one from the command line.
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
    parser: argparse.ArgumentParser, *forms: str, told: str = "default %(default)s"
) -> None:
    """Add ``-o``, the form of what is printed; the first one is the default."""
    parser.add_argument("-o", "--output", choices=forms, default=forms[0], help=told)


@cache
def _terminal_columns() -> int:
    try:
        told = int(os.environ.get("COLUMNS", "0"))
        return told or os.get_terminal_size(sys.stdout.fileno()).columns or _COLUMNS
    except (AttributeError, OSError, ValueError):  # no stdout, no terminal, no number
        return _COLUMNS


def variable_of(flag: str) -> str:
    """Name the environment variable of a flag.

    >>> variable_of("--nri-socket")
    'NRI_RESMGR_NRI_SOCKET'
    """
    return PREFIX + flag.strip("-").upper().replace("-", "_")


def process_environment() -> Mapping[str, str]:
    """Return the environment that flags are looked up in."""
    return os.environ


def seconds(text: str) -> float:
    """Take a flag's value as seconds: 0, or from 1 to a day."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if value != 0 and not 1 <= value <= _DAY:
        raise argparse.ArgumentTypeError(f"{text!r}: 0, or 1 to {_DAY} seconds")
    return value


def one_of(*words: str) -> Callable[[str], str]:
    """Make a flag's type that takes one of *words*.

    argparse checks ``choices`` on the command line only, not in defaults.
    """

    def check(text: str) -> str:
        if text not in words:
            known = ", ".join(words)
            raise argparse.ArgumentTypeError(f"{text!r} is none of {known}")
        return text

    return check
