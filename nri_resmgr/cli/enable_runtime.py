"""``nri-resmgr enable-runtime``: switch NRI on in the runtime's configuration."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Final

from nri_resmgr.cli.flags import Commands, Flags, Help, add_output

_EXAMPLES: Final = """\
examples:
  nri-resmgr enable-runtime --dry-run        what would be changed, as a diff
  nri-resmgr enable-runtime --restart        change it, and restart the runtime
  nri-resmgr enable-runtime --registration-timeout 10s --request-timeout 5s
  nri-resmgr enable-runtime --undo           as it was, to the byte

The original of a file that is edited is kept beside it, *.before-nri-resmgr.

exit status: 0 done, or nothing to do; 1 the node is not as it should be; 2 the
configuration is not safe to edit, or the flags are wrong
"""


def add_enable_runtime(commands: Commands, environment: Mapping[str, str]) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "enable-runtime",
        help="switch NRI on in containerd or CRI-O",
        description="Find the node's runtime and switch NRI on in its configuration: "
        "by a drop-in where the runtime reads those, else in the file itself, of which "
        "nothing else changes.",
        epilog=_EXAMPLES,
        formatter_class=Help,
    )
    _add_what_to_change(parser)
    _add_what_to_do(parser)
    Flags(parser, environment).add(
        "--host-root",
        default="/",
        metavar="PATH",
        help="where the host's root is mounted",
    )
    add_output(parser, "text", "json")
    parser.set_defaults(command=_enable_runtime)


def _add_what_to_change(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    for name, told in (("containerd", "containerd"), ("crio", "CRI-O")):
        which.add_argument(
            f"--{name}",
            action="store_const",
            const=name,
            dest="runtime",
            help=f"it is {told}; default: what runs",
        )
    for name, told in (
        ("registration", "to register, such as 10s"),
        ("request", "to answer a request, such as 5s"),
    ):
        parser.add_argument(
            f"--{name}-timeout",
            default="",
            metavar="TIME",
            help=f"how long a plugin may take {told}; default: as it is",
        )


def _add_what_to_do(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--dry-run", action="store_true", help="show what would be changed"
    )
    what.add_argument(
        "--restart",
        action="store_true",
        help="restart the runtime's systemd unit if something was changed",
    )
    parser.add_argument(
        "--undo", action="store_true", help="take back what this command did"
    )


def _enable_runtime(options: argparse.Namespace) -> int:
    # Late: other commands need none of it.
    from nri_resmgr.cli.enable_runtime_work import enable_runtime

    return enable_runtime(options)
