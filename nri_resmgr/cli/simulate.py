"""``nri-resmgr simulate``: what would become of a workload on a machine."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nri_resmgr.cli.flags import Commands, Flags, Help, add_output
from nri_resmgr.cli.run_flags import add_host_flags
from nri_resmgr.values import InputError

_EXAMPLES: Final = """\
examples:
  nri-resmgr simulate --topology 2s2n8c2t pods.yaml         a made-up machine
  nri-resmgr simulate --topology node7.tgz deployment.yaml  another one, by its dump
  nri-resmgr simulate --config-file a.yaml --against b.yaml pods.yaml
  nri-resmgr simulate --picture node.svg pods.yaml          this machine, as a picture

WORKLOAD is a scenario, or Kubernetes manifests of pods and what makes pods.

exit status: 0 done, also where containers were refused; 1 the two configurations of
--against differ; 2 bad input
"""

_SUFFIXES: Final = (".svg", ".html")


@dataclass(eq=False)
class BadFile(InputError):
    """A file that the command line names has a mistake in it."""

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


def add_simulate(commands: Commands, environment: Mapping[str, str]) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "simulate",
        help="say where the containers of a workload would run",
        description="Place a workload by the real policy, on a machine that need not "
        "be there, and show who is where, what is refused, and what is left.",
        epilog=_EXAMPLES,
        formatter_class=Help,
    )
    parser.add_argument("workload", type=Path, metavar="WORKLOAD")
    parser.add_argument(
        "--topology",
        metavar="SPEC|DUMP",
        help="a made-up machine such as 2s2n4c2t, or a file of `topology dump`; "
        "default is the scenario's, or this machine",
    )
    add_host_flags(Flags(parser, environment))
    parser.add_argument("--config-file", type=Path, metavar="FILE")
    parser.add_argument(
        "--against", type=Path, metavar="FILE", help="show what differs with this one"
    )
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="draw it: .svg or .html"
    )
    add_output(parser, "table", "json")
    parser.set_defaults(command=simulate)


def simulate(options: argparse.Namespace) -> int:
    """Play the workload, once or with two configurations, and show what came of it.

    Raises:
        ResmgrError: Bad input, or this machine cannot be read.
    """
    if options.picture and options.picture.suffix not in _SUFFIXES:
        raise NoPicture(options.picture, f"its name ends in none of {_SUFFIXES}")
    # Late: other commands need none of it.
    from nri_resmgr.cli.simulated import show_changes, show_findings
    from nri_resmgr.host.text_file import read_text_file
    from nri_resmgr.scenario.manifests import read_workload

    _log_warnings()
    try:
        scenario = read_workload(read_text_file(options.workload))
    except InputError as mistake:
        raise BadFile(options.workload, mistake) from None
    machine = _machine(options, scenario.machine)
    found = _play(machine, scenario, options.config_file)
    if options.picture:
        _draw(found, options.picture)
    if options.against is None:
        print(show_findings(found, options.output))
        return 0
    other = _play(machine, scenario, options.against)
    text, differ = show_changes(found, other, options.output)
    print(text)
    return int(differ)


def _machine(options: argparse.Namespace, told: str) -> Any:
    from nri_resmgr.cli.chosen_machine import named_machine, this_machine

    text = options.topology or told
    return named_machine(text) if text else this_machine(options)


def _play(machine: Any, scenario: Any, config_file: Path | None) -> Any:
    from nri_resmgr.host.text_file import read_text_file
    from nri_resmgr.scenario.findings import findings_of
    from nri_resmgr.scenario.node import InProcessNode
    from nri_resmgr.scenario.play import Player

    document = read_text_file(config_file) if config_file else scenario.document
    try:
        node = InProcessNode(machine, document)
    except InputError as mistake:
        raise BadFile(config_file or Path("the scenario"), mistake) from None
    Player(node).play(scenario)
    return findings_of(node)


def _draw(found: Any, path: Path) -> None:
    from nri_resmgr.scenario.picture import picture_html, picture_svg

    draw = picture_html if path.suffix == ".html" else picture_svg
    try:
        path.write_text(draw(found), encoding="utf-8")
    except OSError as error:
        raise NoPicture(path, (error.strerror or str(error)).lower()) from None


def _log_warnings() -> None:
    from nri_resmgr.log.output import LogFormat, configure_logging

    configure_logging("warning", LogFormat.TEXT)
