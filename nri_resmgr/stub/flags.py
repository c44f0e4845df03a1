"""Flags that every plugin has: identity, socket, configuration, log level, dry run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from nri_resmgr.log.levels import LEVELS
from nri_resmgr.stub.identity import program_name
from nri_resmgr.stub.transport import DEFAULT_SOCKET
from nri_resmgr.values.errors import InputError

if TYPE_CHECKING:  # a launched plugin has no arguments
    import argparse

# A runtime could not send more: a message of ttRPC has 4 MiB at most.
_MOST: Final = 4 << 20


class BadFlag(InputError):
    """A flag of a plugin is unknown, or has no valid value."""


@dataclass(eq=False)
class BadConfigFile(InputError):
    """The file of ``--config`` cannot be read, or nothing reads it."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"--config {self.path}: {self.why}"


class PluginFlags(msgspec.Struct, frozen=True):
    """The values of the flags; None where one is not given.

    Attributes:
        name: Name to register with.
        index: Two digits.
        socket: Path of the runtime's socket.
        config: Path of a configuration, in place of what the runtime hands over.
        log_level: The lowest level that is logged.
        dry_run: Whether replies and updates are logged instead of sent.
    """

    name: str | None = None
    index: str | None = None
    socket: str | None = None
    config: str | None = None
    log_level: str | None = None
    dry_run: bool = False

    @classmethod
    def of(cls, options: argparse.Namespace) -> PluginFlags:
        """Pick the flags of `add_flags` out of what a parser has found."""
        found = vars(options)
        return cls(**{key: found[key] for key in cls.__struct_fields__ if key in found})


def add_flags(parser: argparse.ArgumentParser, *, takes_config: bool = True) -> None:
    """Add the flags to the parser of a program that has flags of its own.

    Args:
        parser: The parser.
        takes_config: Whether the plugin has a ``configure`` handler.
    """
    parser.add_argument(
        "--name", help="name to register with, default that of the program"
    )
    parser.add_argument(
        "--index",
        metavar="NN",
        help="two digits, the order among plugins, default that of the program",
    )
    parser.add_argument(
        "--socket",
        metavar="PATH",
        help=f"socket of the runtime, default {DEFAULT_SOCKET}",
    )
    if takes_config:
        parser.add_argument(
            "--config",
            metavar="FILE",
            help="configuration, in place of the one that the runtime hands over",
        )
    parser.add_argument(
        "--log-level",
        metavar="LEVEL",
        choices=LEVELS,
        help=f"lowest level of log lines, {', '.join(LEVELS)}; default info",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="log replies and updates instead of sending them",
    )


def parse_flags(
    arguments: Sequence[str],
    program: str = "",
    description: str | None = None,
    *,
    takes_config: bool = True,
) -> PluginFlags:
    """Parse the command line of a program without flags of its own.

    Args:
        arguments: The words after the program's.
        program: Its path, for the help.
        description: What it is, for the help.
        takes_config: Whether the plugin has a ``configure`` handler.

    Raises:
        BadFlag: It has another flag, or an invalid value.
        SystemExit: With status 0, after printing the help.
    """
    if not arguments:
        return PluginFlags()  # such as of a launched plugin
    # Late: as above.
    from nri_resmgr.stub.flag_parser import FlagParser

    parser = FlagParser(
        program_name(program), description=description, allow_abbrev=False
    )
    add_flags(parser, takes_config=takes_config)
    return PluginFlags.of(parser.parse_args(arguments))


def read_config(path: str) -> str:
    """Read the file of ``--config``.

    Raises:
        BadConfigFile: It is missing, not readable, too large, or not UTF-8.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MOST + 1)
        text = content.decode()
    except OSError as error:
        raise BadConfigFile(path, (error.strerror or str(error)).lower()) from None
    except UnicodeDecodeError as error:
        raise BadConfigFile(path, f"not UTF-8 at byte {error.start}") from None
    if len(content) > _MOST:
        raise BadConfigFile(path, f"larger than {_MOST >> 20} MiB")
    return text
