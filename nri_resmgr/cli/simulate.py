"""``nri-resmgr simulate``: where the containers of a workload would run."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_resmgr.cli.chosen_machine import named_machine, this_machine
from nri_resmgr.cli.flags import Parser, add_host_flags, add_output
from nri_resmgr.cli.render_findings import show_changes, show_findings
from nri_resmgr.host.text_file import read_text_file
from nri_resmgr.host.tree import HostTree, Tree
from nri_resmgr.log.levels import levels
from nri_resmgr.log.output import LogFormat, configure_logging
from nri_resmgr.scenario.findings import Findings, findings_of
from nri_resmgr.scenario.manifests import read_workload
from nri_resmgr.scenario.node import InProcessNode
from nri_resmgr.scenario.picture import picture_html, picture_svg
from nri_resmgr.scenario.play import Player
from nri_resmgr.scenario.steps import Scenario
from nri_resmgr.topology import Machine
from nri_resmgr.values import InputError

_EXAMPLES: Final = """\
examples:
  nri-resmgr simulate --topology 2s2n8c2t pods.yaml         a synthetic machine
  nri-resmgr simulate --topology node7.tgz deployment.yaml  a dump of another one
  nri-resmgr simulate --config-file a.yaml --against b.yaml pods.yaml
  nri-resmgr simulate --picture node.svg pods.yaml          this machine, as a picture

WORKLOAD is a scenario, or Kubernetes manifests of pods, Deployments and the like.

exit status: 0 done, also if containers were refused; 1 the two configurations of
--against differ; 2 bad input
"""

_SUFFIXES: Final = (".svg", ".html")


@dataclass(eq=False)
class BadFile(InputError):
    """A file of the command line has a mistake."""

    path: Path
    mistake: Exception

    def __str__(self) -> str:
        return f"{self.path}: {self.mistake}"


@dataclass(eq=False)
class NoPicture(InputError):
    """A picture cannot be written."""

    path: Path
    why: str

    def __str__(self) -> str:
        return f"--picture {self.path}: {self.why}"


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Place a workload by the real policy, on this machine or on a synthetic one. "
        "Show the placements, what is refused, and the headroom."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "workload", type=Path, metavar="WORKLOAD", help="a scenario, or manifests"
    )
    parser.add_argument(
        "--topology",
        metavar="SPEC|DUMP",
        help="a synthetic machine such as 2s2n4c2t, or a file of `topology dump`; "
        "default is the scenario's, or this machine",
    )
    add_host_flags(parser)
    parser.add_argument(
        "--config-file",
        type=Path,
        metavar="FILE",
        help="configuration to use, default the scenario's",
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="FILE",
        help="another configuration; show only what differs with it",
    )
    parser.add_argument(
        "--picture",
        type=Path,
        metavar="FILE",
        help="file to draw the machine in, .svg or .html",
    )
    add_output(parser, "table", "json")


def run(options: argparse.Namespace) -> int:
    """Play the workload, with one or two configurations, and print the result."""
    if options.picture and options.picture.suffix not in _SUFFIXES:
        expected = " or ".join(_SUFFIXES)
        raise NoPicture(options.picture, f"expected a name that ends in {expected}")
    # The tables show the decisions; only warnings, as of the configuration, are new.
    configure_logging("warning", LogFormat.TEXT)
    levels.set("app.observing.refusal_log", "error")
    text = read_text_file(options.workload)
    try:
        scenario = read_workload(text)
    except InputError as mistake:
        raise BadFile(options.workload, mistake) from None
    spec = options.topology or scenario.machine
    machine = named_machine(spec) if spec else this_machine(options)
    # A synthetic machine has no cgroups, unless their folder is named besides.
    has_host = not spec or options.host_root != "/"
    tree = HostTree(options.host_root) if has_host else None
    found = _play(machine, scenario, options.config_file, tree)
    if options.picture:
        _draw(found, options.picture)
    if options.against is None:
        print(show_findings(found, options.output, scenario.left_out))
        return 0
    other = _play(machine, scenario, options.against, tree)
    text, differ = show_changes(found, other, options.output, scenario.left_out)
    print(text)
    return int(differ)


def _play(
    machine: Machine,
    scenario: Scenario,
    config_file: Path | None,
    tree: Tree | None,
) -> Findings:
    document = read_text_file(config_file) if config_file else scenario.document
    try:
        node = InProcessNode(machine, document, tree)
    except InputError as mistake:
        raise BadFile(config_file or Path("the scenario"), mistake) from None
    Player(node).play(scenario)
    return findings_of(node)


def _draw(found: Findings, path: Path) -> None:
    draw = picture_html if path.suffix == ".html" else picture_svg
    try:
        path.write_text(draw(found), encoding="utf-8")
    except OSError as error:
        raise NoPicture(path, (error.strerror or str(error)).lower()) from None
