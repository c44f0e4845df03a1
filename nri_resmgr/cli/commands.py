"""The commands of ``nri-resmgr``: their names, and the module of each."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib import import_module
from typing import Final, Protocol, cast

import msgspec


class CommandModule(Protocol):
    """What the module of a command defines."""

    def add_arguments(
        self, parser: argparse.ArgumentParser, environment: Mapping[str, str]
    ) -> None:
        """Describe the command; *environment* gives defaults of its flags."""

    def run(self, options: argparse.Namespace) -> int:
        """Run the command; return its exit status."""


class Command(msgspec.Struct, frozen=True):
    """A command.

    Attributes:
        name: The word on the command line.
        help: Its line in ``nri-resmgr --help``.
        module: A module of this package.
    """

    name: str
    help: str
    module: str

    def load(self) -> CommandModule:
        """Import the module of the command."""
        # Late: a launched plugin has five seconds to register, and starts with what
        # `run` needs. The modules themselves import everything at their top.
        return cast("CommandModule", import_module(f"{__package__}.{self.module}"))


COMMANDS: Final = (
    Command("run", "run the plugin: pin containers to CPUs (the default)", "run"),
    Command("demo", "show the plugin at work, with a test runtime", "demo"),
    Command("status", "show the daemon, its pools and its containers", "status"),
    Command("explain", "explain a container's CPUs and memory nodes", "explain"),
    Command("events", "show recent decisions and refusals", "events"),
    Command("top", "show CPUs, memory and pressure, live", "top"),
    Command("log", "show or set the levels of the daemon's log", "log"),
    Command("reload", "make the daemon read its configuration file again", "reload"),
    Command("topology", "show the machine: CPUs, caches, NUMA nodes", "topology"),
    Command("check", "validate configurations and show their effect", "check"),
    Command("simulate", "show where a workload's containers would run", "simulate"),
    Command("replay", "repeat the decisions of a recording", "replay"),
    Command("install", "install a plugin in the runtime's plugin folder", "install"),
    Command("uninstall", "remove an installed plugin", "uninstall"),
    Command(
        "enable-runtime",
        "enable NRI in containerd or CRI-O",
        "enable_runtime.command",
    ),
)
