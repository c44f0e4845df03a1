"""``nri-resmgr completion``: a script that completes command lines in a shell."""

from __future__ import annotations

import argparse
from typing import Final

from nri_resmgr.cli.completion.bash import bash_script
from nri_resmgr.cli.completion.words import words_of
from nri_resmgr.cli.completion.zsh import zsh_script
from nri_resmgr.cli.flags import Parser
from nri_resmgr.cli.main import build_parser

_SCRIPTS: Final = {"bash": bash_script, "zsh": zsh_script}

_EXAMPLES: Final = """\
examples:
  source <(nri-resmgr completion bash)     in this shell; in ~/.bashrc, in all
  nri-resmgr completion bash > /usr/share/bash-completion/completions/nri-resmgr
                                           for all users, with bash-completion
  nri-resmgr completion zsh > /usr/local/share/zsh/site-functions/_nri-resmgr
                                           for all users; then start a new zsh
"""


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Print a script with which a shell completes commands, flags and their values. "
        "It is that of this version: print it anew after an update."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument("shell", choices=tuple(_SCRIPTS), help="bash or zsh")


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    print(script_of(options.shell), end="")
    return 0


def script_of(shell: str) -> str:
    """Write the script of a shell, ``bash`` or ``zsh``."""
    # Defaults of the environment are no part of it.
    return _SCRIPTS[shell](tuple(words_of(build_parser({}))))
