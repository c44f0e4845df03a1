"""The command line: parses the arguments and runs the chosen command."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nri_resmgr.cli.commands import COMMANDS
from nri_resmgr.cli.flags import Parser
from nri_resmgr.values.errors import ResmgrError
from nri_resmgr.values.exit_status import FAILED, exit_status
from nri_resmgr.values.printable import printable

_EXAMPLES: Final = """\
examples:
  nri-resmgr run                          serve the runtime of this machine
  nri-resmgr run --dry-run                decide and report, change nothing
  nri-resmgr run --config-file my.yaml    with this configuration only
  nri-resmgr agent                        configure the node by its cluster
  nri-resmgr check my.yaml                validate a configuration, show its pools
  nri-resmgr simulate pods.yaml           show where these pods would run
  nri-resmgr demo                         try it without a runtime
  nri-resmgr topology                     show CPUs, caches and NUMA nodes
  nri-resmgr install                      let the runtime start the plugin
  nri-resmgr install ./hello.py --index 10    the same for a plugin of your own
  nri-resmgr new-plugin hello             make a folder for a plugin of your own
  nri-resmgr enable-runtime --dry-run     enable NRI in containerd or CRI-O

Without a command, it runs the plugin if a runtime has launched it or if there is no
terminal; on a terminal it prints this help.

exit status: 0 done, 1 failed, 2 bad input
"""

# Flags without a command; all others are those of `run`.
_OWN_FLAGS: Final = ("-h", "--help", "--version")

# Of the variables that a runtime gives to plugins that it launches; their names are in
# `nri_resmgr.stub`, which is not imported for this.
_OF_LAUNCHED: Final = "NRI_PLUGIN_"


class _ShowVersion(argparse.Action):
    """Prints the version; unlike argparse's own action, reads it when asked only."""

    # Any: argparse's own arguments.
    def __init__(self, option_strings: Sequence[str], dest: str, **how: Any) -> None:
        super().__init__(
            option_strings, dest, nargs=0, default=argparse.SUPPRESS, **how
        )

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print it and end the process."""
        # Late: only this flag needs it.
        from nri_resmgr.version import our_version

        print(f"{parser.prog} {our_version() or '(not installed)'}")
        parser.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words and _is_started_by_a_person(os.environ):
        words.append("--help")
    if not words or (words[0].startswith("-") and words[0] not in _OWN_FLAGS):
        words.insert(0, "run")  # a runtime starts plugins without arguments
    parser = build_parser(os.environ, words[0])
    options, unknown = parser.parse_known_args(words)
    if unknown:
        # `parse_args` would refer to the help of `nri-resmgr`, which has no flags.
        parser.prog = options.prog
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if words[0] != "run":  # which enables it once it serves
        _collect_garbage()
    try:
        status: int = options.command(options)
    except ResmgrError as error:
        line = f"nri-resmgr: {printable(str(error))}"
        if words[0] == "run":
            # Late: it imports sockets, and clients end without it.
            from nri_resmgr.log.last_words import say

            say(line)  # a runtime that launched it does not read standard error
        else:
            print(line, file=sys.stderr)
        return exit_status(error)
    except BrokenPipeError:
        # The reader of our output, such as `head`, has ended. Without another
        # standard output, Python would report the same error again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return status


def _is_started_by_a_person(environment: Mapping[str, str]) -> bool:
    """Return whether standard input and output are a terminal's, and no runtime's."""
    if any(name.startswith(_OF_LAUNCHED) for name in environment):
        return False
    # Either may be closed, and None.
    streams = (sys.stdin, sys.stdout)
    return all(stream is not None and stream.isatty() for stream in streams)


def _collect_garbage() -> None:
    """Enable collection, which was off for the imports, and look at none of theirs."""
    gc.freeze()
    gc.enable()


def build_parser(environment: Mapping[str, str], chosen: str | None = None) -> Parser:
    """Describe the commands.

    Args:
        environment: Gives defaults of flags.
        chosen: The word on the command line. Only that command is described: the
            others cost 25 million instructions of each start. None describes all.
    """
    parser = Parser(
        prog="nri-resmgr",
        description="Node resource manager: an NRI plugin of containerd and CRI-O.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "--version", action=_ShowVersion, help="print the version and exit"
    )
    parsers = parser.add_subparsers(
        title="commands", required=True, metavar="COMMAND", prog=parser.prog
    )
    # Without a match, all names are there for --help and for the error message.
    for command in [one for one in COMMANDS if one.name == chosen] or COMMANDS:
        described = parsers.add_parser(
            command.name, help=command.help, environment=environment
        )
        if chosen in (None, command.name):
            module = command.load()
            module.add_arguments(described)
            described.set_defaults(command=module.run, prog=described.prog)
    return parser
