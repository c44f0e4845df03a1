"""``nri-resmgr plugin``: run a plugin that is shipped, as in a container of its own."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Final

from nri_resmgr.cli.flags import Parser
from nri_resmgr.cli.install import find_program

_EXAMPLES: Final = """\
examples:
  nri-resmgr plugin ulimit-adjuster            until a signal ends it
  nri-resmgr plugin logger --events all        with flags of the plugin
  nri-resmgr plugin logger --help              which flags it has
"""


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Run a plugin that connects to the runtime's socket itself. `install` has the "
        "runtime start it instead."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument("plugin", help="name of a shipped plugin, or path of a program")
    parser.add_argument(
        "flags", nargs=argparse.REMAINDER, metavar="...", help="flags of the plugin"
    )


def run(options: argparse.Namespace) -> int:
    """Become the plugin.

    Raises:
        NoSuchPlugin: There is no such program.
    """
    program = str(find_program(options.plugin))
    # In place of this process: the plugin gets its signals, and its own command line.
    os.execv(sys.executable, (sys.executable, program, *options.flags))  # noqa: S606 - our own interpreter
