"""One run of a scenario by a command, with its progress."""

from __future__ import annotations

import argparse
from pathlib import Path

from nri_resmgr.cli.progress import Progress
from nri_resmgr.host.text_file import read_text_file
from nri_resmgr.host.tree import Tree
from nri_resmgr.scenario.manifests import BadFile
from nri_resmgr.scenario.node import InProcessNode
from nri_resmgr.scenario.play import Player
from nri_resmgr.scenario.steps import Scenario
from nri_resmgr.topology import Machine
from nri_resmgr.values import InputError


def configurations(options: argparse.Namespace) -> list[Path | None]:
    """Return the files of the configurations to compare; None for the scenario's."""
    return [options.config_file, *([options.against] if options.against else [])]


def played(
    machine: Machine,
    scenario: Scenario,
    config_file: Path | None,
    tree: Tree | None,
    progress: Progress,
) -> InProcessNode:
    """Play a scenario with a configuration, by default its own; return the node.

    Raises:
        BadFile: The configuration has a mistake, or does not fit the machine.
    """
    document = read_text_file(config_file) if config_file else scenario.document
    try:
        node = InProcessNode(machine, document, tree)
    except InputError as mistake:
        raise BadFile(str(config_file or "the scenario"), mistake) from None
    Player(node, progress.advance).play(scenario)
    return node
