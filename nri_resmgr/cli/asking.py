"""The commands that ask a running daemon: their arguments, and the way to each."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

from nri_resmgr.cli.flags import Commands, Flags, Help, add_output
from nri_resmgr.cli.run_flags import add_control_flag

_INTERVAL: Final = 2.0  # seconds


def add_asking_commands(commands: Commands, environment: Mapping[str, str]) -> None:
    """Describe them; *environment* gives defaults."""
    _add_status(commands, environment)
    _add_explain(commands, environment)
    _add_events(commands, environment)
    _add_top(commands, environment)
    _add_log(commands, environment)
    _add_reload(commands, environment)


def _add_status(commands: Commands, environment: Mapping[str, str]) -> None:
    parser = commands.add_parser(
        "status",
        help="show how the daemon is, its pools and its containers",
        description="Ask the daemon how it is, what is granted and what is free.",
        epilog="examples: status; status -o json | jq .nodes",
        formatter_class=Help,
    )
    _add_asking(parser, environment, "status")
    add_output(parser, "text", "json")


def _add_explain(commands: Commands, environment: Mapping[str, str]) -> None:
    parser = commands.add_parser(
        "explain",
        help="say why a container has its CPUs and memory nodes",
        description="Ask why containers are where they are, how they came there, and "
        "what was refused of late.",
        epilog="examples: explain web; explain shop/web/nginx; explain web/nginx "
        "-o json; explain 3f2a (the beginning of an id)",
        formatter_class=Help,
    )
    parser.add_argument(
        "who",
        metavar="POD[/CONTAINER]",
        help="[NAMESPACE/]POD[/CONTAINER], each whole or in part, or an id",
    )
    _add_asking(parser, environment, "explain")
    add_output(parser, "text", "json")


def _add_events(commands: Commands, environment: Mapping[str, str]) -> None:
    parser = commands.add_parser(
        "events",
        help="show what was decided and refused of late",
        description="Show what happened: decisions with their reasons, refusals, "
        "sessions, configurations.",
        epilog="examples: events --follow; events --since 120 -o json",
        formatter_class=Help,
    )
    parser.add_argument(
        "-f", "--follow", action="store_true", help="go on as things happen"
    )
    parser.add_argument(
        "--since",
        type=_number,
        default=0,
        metavar="N",
        help="only events after number N; default all that are kept",
    )
    _add_asking(parser, environment, "events")
    add_output(
        parser,
        "text",
        "json",
        told="text or a JSON object per line; default %(default)s",
    )


def _add_top(commands: Commands, environment: Mapping[str, str]) -> None:
    parser = commands.add_parser(
        "top",
        help="watch who has which CPUs, memory by node, and pressure",
        description="Draw the machine's CPUs with their owners, again and again. "
        "q or Ctrl-C ends it.",
        epilog="examples: top; top --once; top --interval 0.5",
        formatter_class=Help,
    )
    parser.add_argument("--once", action="store_true", help="print one picture")
    parser.add_argument(
        "--interval",
        type=_seconds,
        default=_INTERVAL,
        metavar="SECONDS",
        help="between two pictures, default %(default)s",
    )
    _add_asking(parser, environment, "top")
    add_output(
        parser,
        "text",
        "json",
        told="text or a JSON object per picture; default %(default)s",
    )


def _add_log(commands: Commands, environment: Mapping[str, str]) -> None:
    parser = commands.add_parser(
        "log",
        help="show or set the levels of the daemon's log",
        description="Show the levels of the log, or set those of some components.",
        epilog="examples: log; log debug; log debug stub 'policy.*'",
        formatter_class=Help,
    )
    parser.add_argument(
        "level", nargs="?", metavar="LEVEL", help="debug, info, warning or error"
    )
    parser.add_argument(
        "patterns",
        nargs="*",
        metavar="PATTERN",
        help="components, such as stub or 'app.*'; default all",
    )
    _add_asking(parser, environment, "log")
    add_output(parser, "text", "json")


def _add_reload(commands: Commands, environment: Mapping[str, str]) -> None:
    parser = commands.add_parser(
        "reload",
        help="have the daemon read its configuration file again, now",
        description="Have the configuration file read again, and say what came of it.",
        formatter_class=Help,
    )
    _add_asking(parser, environment, "reload")


def _add_asking(
    parser: argparse.ArgumentParser, environment: Mapping[str, str], name: str
) -> None:
    add_control_flag(Flags(parser, environment))
    parser.set_defaults(command=_command(name))


def _command(name: str) -> Callable[[argparse.Namespace], int]:
    def command(options: argparse.Namespace) -> int:
        # Late: only the one that is run is imported.
        module = import_module(f"nri_resmgr.cli.{name}")
        status: int = getattr(module, name)(options)
        return status

    return command


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of an event")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600:  # noqa: PLR2004 - told in the sentence
        raise argparse.ArgumentTypeError(f"{text!r} is not 0.1 to 3600 seconds")
    return seconds
