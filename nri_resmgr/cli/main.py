"""The command line: reads arguments, hands over to what they ask for."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from nri_resmgr.cli.flags import (
    Commands,
    Flags,
    Help,
    Parser,
    one_of,
    process_environment,
)
from nri_resmgr.stub.serve import FAILED, exit_status
from nri_resmgr.stub.transport import DEFAULT_SOCKET
from nri_resmgr.values.errors import ResmgrError

INTERRUPTED: Final = 128 + signal.SIGINT  # as shells have it

DEFAULT_RUN_DIR: Final = "/run/nri-resmgr"
DEFAULT_NAME: Final = "resource-policy"
DEFAULT_INDEX: Final = "90"  # after plugins that change what a container asks for

_EXAMPLES: Final = """\
examples:
  nri-resmgr run                          serve the runtime of this machine
  nri-resmgr run --dry-run                decide and report, change nothing
  nri-resmgr run --config-file my.yaml    with this configuration, whatever comes
  nri-resmgr demo                         see it work without a runtime
  nri-resmgr topology                     what the machine is
  nri-resmgr install                      let the runtime start it
  nri-resmgr install ./hello.py --index 10    the same for a plugin of yours

exit status: 0 done, 1 failed, 2 bad input
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help")):
        words.insert(0, "run")  # what a runtime starts has no arguments
    parser = build_parser(process_environment(), only_run=words[0] == "run")
    options = parser.parse_args(words)
    try:
        status: int = options.command(options)
    except ResmgrError as error:
        print(f"nri-resmgr: {error}", file=sys.stderr)
        return exit_status(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough; Python would say so at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return status


def build_parser(
    environment: Mapping[str, str], *, only_run: bool = False
) -> argparse.ArgumentParser:
    """Describe the commands.

    Args:
        environment: Gives defaults.
        only_run: Leave out the others, which take 25 million instructions.
    """
    parser = Parser(
        prog="nri-resmgr",
        description="Node resource manager: an NRI plugin of containerd and CRI-O.",
        epilog=_EXAMPLES,
        formatter_class=Help,
    )
    commands = parser.add_subparsers(
        title="commands", required=True, metavar="COMMAND", prog=parser.prog
    )
    _add_run(commands, environment)
    if not only_run:
        from nri_resmgr.cli.other_commands import add_other_commands

        add_other_commands(commands, environment)
    return parser


def _add_run(commands: Commands, environment: Mapping[str, str]) -> None:
    parser = commands.add_parser(
        "run",
        help="be the plugin: decide where containers run (the default)",
        description="Register with the runtime and decide where containers run.",
        formatter_class=Help,
    )
    flags = Flags(parser, environment)
    flags.add("--nri-socket", metavar="PATH", help=f"default {DEFAULT_SOCKET}")
    flags.add("--nri-plugin-name", metavar="NAME", help=f"default {DEFAULT_NAME}")
    flags.add("--nri-plugin-index", metavar="NN", help=f"default {DEFAULT_INDEX}")
    flags.add(
        "--config-file",
        "--force-config",
        metavar="FILE",
        help="the only configuration; the runtime's drop-in file is ignored",
    )
    add_host_flags(flags)
    flags.add(
        "--run-dir",
        default=DEFAULT_RUN_DIR,
        metavar="PATH",
        help=f"for files that tell containers what they have ({DEFAULT_RUN_DIR})",
    )
    flags.add_switch("--dry-run", "decide and report, adjust nothing")
    flags.add(
        "--log-level",
        type=one_of("debug", "info", "warning", "error"),
        default="info",
        metavar="LEVEL",
        help="debug, info, warning or error",
    )
    flags.add(
        "--log-format",
        type=one_of("text", "json"),
        default="text",
        metavar="FORMAT",
        help="text or json",
    )
    parser.set_defaults(command=_run)


def add_host_flags(flags: Flags) -> None:
    """Add the flags of commands that read the host's machine."""
    flags.add(
        "--host-root",
        default="/",
        metavar="PATH",
        help="where the host's /sys and /proc are mounted",
    )
    flags.add(
        "--memory-kinds",
        default="",
        metavar="NODES=KIND",
        help="what memory is made of where the host tells it wrongly: '2-3=hbm 4=cxl'",
    )


def _run(options: argparse.Namespace) -> int:
    # Late: what a mistake on the command line tells needs none of it.
    from nri_resmgr.cli.run import run

    return run(options)
