"""The commands beside ``run``: their arguments, and the way to what they do."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from nri_resmgr.cli.asking import add_asking_commands
from nri_resmgr.cli.check import add_check
from nri_resmgr.cli.enable_runtime import add_enable_runtime
from nri_resmgr.cli.flags import Commands, Flags, add_output
from nri_resmgr.cli.replay import add_replay
from nri_resmgr.cli.run_flags import add_host_flags
from nri_resmgr.cli.simulate import add_simulate
from nri_resmgr.daemon.defaults import DEFAULT_INDEX, DEFAULT_NAME
from nri_resmgr.stub.transport import DEFAULT_SOCKET


def add_other_commands(commands: Commands, environment: Mapping[str, str]) -> None:
    """Describe them; *environment* gives defaults."""
    _add_demo(commands)
    add_asking_commands(commands, environment)
    _add_topology(commands, environment)
    add_check(commands, environment)
    add_simulate(commands, environment)
    add_replay(commands)
    _add_install(commands)
    _add_uninstall(commands)
    add_enable_runtime(commands, environment)


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
    add_host_flags(Flags(parser, environment))
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--machine", metavar="SPEC", help="a made-up machine instead")
    instead.add_argument("--load", type=Path, metavar="FILE", help="a dump instead")
    add_output(parser, "tree", "json", "yaml")
    parser.set_defaults(command=_topology("show"))
    more = parser.add_subparsers(title="instead of showing it", metavar="")
    dump = more.add_parser("dump", help="write it to an archive that loads anywhere")
    dump.add_argument("file", type=Path, metavar="FILE")
    dump.set_defaults(command=_topology("dump"))
    sysfs = more.add_parser("sysfs", help="write its sysfs files, for other programs")
    sysfs.add_argument("folder", type=Path, metavar="FOLDER")
    sysfs.set_defaults(command=_topology("sysfs"))


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


# Commands are imported when they are run.


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
    if done.not_compiled:
        print(f"byte code not written, starts are slower: {done.not_compiled}")
    print("restart the runtime to have it started")
    return 0


def _uninstall(options: argparse.Namespace) -> int:
    from nri_resmgr.cli.install import Folders, uninstall

    folders = Folders(options.plugin_dir, options.config_dir)
    for path in uninstall(options.plugin, folders, purge=options.purge):
        print(f"removed {path}")
    return 0
