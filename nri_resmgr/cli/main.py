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
    process_environment,
)
from nri_resmgr.cli.run_flags import add_run_flags
from nri_resmgr.stub.serve import FAILED, exit_status
from nri_resmgr.values.errors import ResmgrError

INTERRUPTED: Final = 128 + signal.SIGINT  # as shells have it

_EXAMPLES: Final = """\
examples:
  nri-resmgr run                          serve the runtime of this machine
  nri-resmgr run --dry-run                decide and report, change nothing
  nri-resmgr run --config-file my.yaml    with this configuration, whatever comes
  nri-resmgr check my.yaml                is it right, and what comes of it
  nri-resmgr simulate pods.yaml           where would these pods run
  nri-resmgr demo                         see it work without a runtime
  nri-resmgr topology                     what the machine is
  nri-resmgr install                      let the runtime start it
  nri-resmgr install ./hello.py --index 10    the same for a plugin of yours
  nri-resmgr enable-runtime --dry-run     switch NRI on in containerd or CRI-O

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
    add_run_flags(Flags(parser, environment))
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    # Late: what a mistake on the command line tells needs none of it.
    from nri_resmgr.daemon.run import run

    return run(options)
