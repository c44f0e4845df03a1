"""The command line: reads arguments, hands over to what they ask for."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from nri_resmgr.cli.flags import Flags, one_of, process_environment
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
    parser = build_parser(process_environment())
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help")):
        words.insert(0, "run")  # what a runtime starts has no arguments
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


def build_parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    """Describe all commands; *environment* gives defaults."""
    parser = argparse.ArgumentParser(
        prog="nri-resmgr",
        description="Node resource manager: an NRI plugin of containerd and CRI-O.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_run(commands, environment)
    _add_demo(commands)
    _add_topology(commands, environment)
    _add_install(commands)
    _add_uninstall(commands)
    return parser


class Commands(Protocol):
    """What argparse returns for subcommands; its class has no public name."""

    def add_parser(self, name: str, **how: Any) -> argparse.ArgumentParser:
        """Add a subcommand."""


def _add_run(commands: Commands, environment: Mapping[str, str]) -> None:
    parser = commands.add_parser(
        "run",
        help="be the plugin: decide where containers run (the default)",
        description="Register with the runtime and decide where containers run.",
    )
    flags = Flags(parser, environment)
    flags.add("--nri-socket", metavar="PATH", help=f"default {DEFAULT_SOCKET}")
    flags.add("--nri-plugin-name", metavar="NAME", help=f"default {DEFAULT_NAME}")
    flags.add("--nri-plugin-index", metavar="NN", help=f"default {DEFAULT_INDEX}")
    flags.add(
        "--config-file",
        "--force-config",
        type=Path,
        metavar="FILE",
        help="the only configuration; the runtime's drop-in file is ignored",
    )
    _add_host_root(flags)
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


def _add_demo(commands: Commands) -> None:
    parser = commands.add_parser(
        "demo",
        help="show the plugin at work, with a runtime of our own",
        description=(
            "Start a test runtime on a real socket, the plugin on the other side of "
            "it, a small workload, and show who gets which CPUs."
        ),
    )
    parser.add_argument(
        "--machine",
        metavar="SPEC",
        help="a made-up machine such as 2s2n4c2t; default is this one, or that "
        "where this one has too few CPUs to show anything",
    )
    parser.add_argument(
        "--unless-socket",
        nargs="?",
        const=DEFAULT_SOCKET,
        metavar="PATH",
        help=f"serve the runtime there instead, if there is one ({DEFAULT_SOCKET})",
    )
    parser.set_defaults(command=_demo)


def _add_topology(commands: Commands, environment: Mapping[str, str]) -> None:
    parser = commands.add_parser(
        "topology",
        help="show the machine: CPUs, caches, NUMA nodes, devices",
        description="Show the machine as the policies see it.",
        epilog="examples: topology -o json; topology dump node7.tgz; "
        "topology --load node7.tgz; topology --machine '2s2n8c2t' sysfs /tmp/host",
    )
    _add_host_root(Flags(parser, environment))
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--machine", metavar="SPEC", help="a made-up machine instead")
    instead.add_argument("--load", type=Path, metavar="FILE", help="a dump instead")
    parser.add_argument(
        "-o",
        "--output",
        choices=("tree", "json", "yaml"),
        default="tree",
        help="default %(default)s",
    )
    parser.set_defaults(command=_topology("show"))
    more = parser.add_subparsers(title="instead of showing it", metavar="")
    dump = more.add_parser("dump", help="write it to an archive that loads anywhere")
    dump.add_argument("file", type=Path, metavar="FILE")
    dump.set_defaults(command=_topology("dump"))
    sysfs = more.add_parser("sysfs", help="write its sysfs files, for other programs")
    sysfs.add_argument("folder", type=Path, metavar="FOLDER")
    sysfs.set_defaults(command=_topology("sysfs"))


def _add_host_root(flags: Flags) -> None:
    flags.add(
        "--host-root",
        type=Path,
        default="/",
        metavar="PATH",
        help="where the host's /sys and /proc are mounted",
    )


def _add_install(commands: Commands) -> None:
    parser = commands.add_parser(
        "install",
        help="put a plugin into the runtime's plugin folder",
        description="Put a launcher into the runtime's plugin folder.",
    )
    parser.add_argument(
        "plugin",
        nargs="?",
        default=DEFAULT_NAME,
        help=f"a shipped plugin, or a program's path; default {DEFAULT_NAME}",
    )
    parser.add_argument("--name", help="default: named after the program")
    parser.add_argument("--index", default=DEFAULT_INDEX, help="default %(default)s")
    parser.add_argument("--config", type=Path, metavar="FILE", help="default: a sample")
    _add_folders(parser)
    parser.set_defaults(command=_install)


def _add_uninstall(commands: Commands) -> None:
    parser = commands.add_parser(
        "uninstall",
        help="take a plugin out of the runtime's plugin folder",
        description="Remove launchers that `install` wrote.",
    )
    parser.add_argument(
        "plugin", nargs="?", default=DEFAULT_NAME, help="NAME or NN-NAME"
    )
    parser.add_argument(
        "--purge", action="store_true", help="remove its configuration file, too"
    )
    _add_folders(parser)
    parser.set_defaults(command=_uninstall)


def _add_folders(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plugin-dir",
        type=Path,
        default=Path("/opt/nri/plugins"),
        help="the runtime's plugin_path, default %(default)s",
    )
    parser.add_argument(
        "--config-dir",
        type=Path,
        default=Path("/etc/nri/conf.d"),
        help="the runtime's plugin_config_path, default %(default)s",
    )


# Commands are imported when they are run: the daemon's start pays for no other.


def _run(options: argparse.Namespace) -> int:
    from nri_resmgr.cli.run import run

    return run(options)


def _demo(options: argparse.Namespace) -> int:
    from nri_resmgr.cli.demo import demo

    return demo(options)


def _topology(what: str) -> Callable[[argparse.Namespace], int]:
    def command(options: argparse.Namespace) -> int:
        from nri_resmgr.cli import topology

        status: int = getattr(topology, what)(options)
        return status

    return command


def _install(options: argparse.Namespace) -> int:
    from nri_resmgr.cli.install import Folders, default_name, install
    from nri_resmgr.stub.identity import Identity

    identity = Identity(options.name or default_name(options.plugin), options.index)
    folders = Folders(options.plugin_dir, options.config_dir)
    done = install(options.plugin, identity, folders, options.config)
    print(f"installed {done.launcher}")
    if done.config.exists():
        kept = "written" if done.config_is_new else "left as it is"
        print(f"configuration {done.config}: {kept}")
    print("restart the runtime to have it started")
    return 0


def _uninstall(options: argparse.Namespace) -> int:
    from nri_resmgr.cli.install import Folders, uninstall

    folders = Folders(options.plugin_dir, options.config_dir)
    for path in uninstall(options.plugin, folders, purge=options.purge):
        print(f"removed {path}")
    return 0
