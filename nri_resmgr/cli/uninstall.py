"""``nri-resmgr uninstall``: remove a plugin's launcher."""

from __future__ import annotations

import argparse
from typing import Final

from nri_resmgr.cli.flags import Parser
from nri_resmgr.cli.install import Folders, add_folder_flags, uninstall
from nri_resmgr.daemon.defaults import DEFAULT_NAME

_EXAMPLES: Final = """\
examples:
  nri-resmgr uninstall                     the resource policy
  nri-resmgr uninstall 10-hello --purge    another plugin, with its configuration
"""


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = "Remove launchers that `install` wrote."
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "plugin", nargs="?", default=DEFAULT_NAME, help="NAME or NN-NAME"
    )
    parser.add_argument(
        "--purge", action="store_true", help="also remove its configuration file"
    )
    add_folder_flags(parser)


def run(options: argparse.Namespace) -> int:
    """Remove a plugin."""
    folders = Folders(options.plugin_dir, options.config_dir)
    for path in uninstall(options.plugin, folders, purge=options.purge):
        print(f"removed {path}")
    return 0
