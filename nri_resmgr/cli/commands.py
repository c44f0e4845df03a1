"""The commands of ``nri-resmgr``: their names, and the module of each."""

from __future__ import annotations

import argparse
from enum import Enum
from importlib import import_module
from typing import Final, Protocol, cast

import msgspec

from nri_resmgr.cli.flags import Parser
from nri_resmgr.process.tls import import_without_tls


class CommandModule(Protocol):
    """The interface of the module of a command."""

    def add_arguments(self, parser: Parser) -> None:
        """Describe the command."""

    def run(self, options: argparse.Namespace) -> int:
        """Run the command; return its exit status.

        Raises:
            ResmgrError: `main` prints it.
        """


class Tls(Enum):
    """What a command needs TLS for when it is imported."""

    NONE = "nothing"
    CLIENT = "its client of the API server; asyncio does without"
    SERVER = "connections of asyncio"


class Command(msgspec.Struct, frozen=True):
    """A command.

    Attributes:
        name: The word on the command line.
        help: Its line in ``nri-resmgr --help``.
        module: A module of this package.
        tls: What it needs TLS for.
    """

    name: str
    help: str
    module: str
    tls: Tls = Tls.NONE

    def load(self) -> CommandModule:
        """Import the module of the command."""
        # Late: a launched plugin has five seconds to register, and starts with what
        # `run` needs. The modules themselves import everything at their top.
        name = f"{__package__}.{self.module}"
        if self.tls is Tls.NONE:
            return cast("CommandModule", import_without_tls(name))
        if self.tls is Tls.CLIENT:
            import_without_tls("asyncio")
        return cast("CommandModule", import_module(name))


COMMANDS: Final = (
    Command("run", "run the plugin: pin containers to CPUs (the default)", "run"),
    Command("agent", "connect the node with its cluster", "agent", Tls.CLIENT),
    Command(
        "webhook",
        "write requests of pods into their annotations",
        "webhook",
        Tls.SERVER,
    ),
    Command(
        "webhook-certificates",
        "make and rotate the certificates of the webhook",
        "webhook_certificates",
        Tls.CLIENT,
    ),
    Command("demo", "show the plugin at work, with a test runtime", "demo"),
    Command("status", "show the daemon, its pools and its containers", "status"),
    Command("explain", "explain a container's CPUs and memory nodes", "explain"),
    Command("events", "show recent decisions and refusals", "events"),
    Command("top", "show CPUs, memory and pressure, live", "top"),
    Command("log", "show or set the levels of the daemon's log", "log"),
    Command("reload", "make the daemon read its configuration file again", "reload"),
    Command("rebalance", "move containers to better places", "rebalance"),
    Command("topology", "show the machine: CPUs, caches, NUMA nodes", "topology"),
    Command("check", "validate configurations and show their effect", "check"),
    Command("schema", "print schemas of documents for editors and clusters", "schema"),
    Command("convert", "convert other managers' configurations to ours", "convert"),
    Command("simulate", "show where a workload's containers would run", "simulate"),
    Command("replay", "repeat the decisions of a recording", "replay"),
    Command("try", "show what a plugin does to the pods of manifests", "try_plugin"),
    Command("inspect", "show what the runtime's plugins change, live", "inspect_chain"),
    Command("plugin", "run a shipped plugin, or one of your own", "plugin"),
    Command(
        "new-plugin", "make a folder for a plugin of your own", "new_plugin.command"
    ),
    Command(
        "completion",
        "print a script that completes command lines in a shell",
        "completion.command",
    ),
    Command("install", "install a plugin in the runtime's plugin folder", "install"),
    Command("uninstall", "remove an installed plugin", "uninstall"),
    Command(
        "enable-runtime",
        "enable NRI in containerd or CRI-O",
        "enable_runtime.command",
    ),
)
