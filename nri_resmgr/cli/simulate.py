"""``nri-resmgr simulate``: where the containers of a workload would run."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_resmgr.cli.chosen_machine import named_machine, this_machine
from nri_resmgr.cli.flags import Parser, add_host_flags, add_picture_flag
from nri_resmgr.cli.output import add_output
from nri_resmgr.cli.output_files import write_picture
from nri_resmgr.cli.played import configurations, played
from nri_resmgr.cli.progress import Progress, standard_error
from nri_resmgr.cli.render_findings import show_changes, show_findings
from nri_resmgr.cli.simulate_cluster import simulate_cluster
from nri_resmgr.cli.workload_files import read_texts
from nri_resmgr.host.tree import HostTree
from nri_resmgr.log.levels import levels
from nri_resmgr.log.output import LogFormat, configure_logging
from nri_resmgr.scenario.findings import findings_of
from nri_resmgr.scenario.manifests import read_workloads
from nri_resmgr.scenario.picture import picture_of
from nri_resmgr.values import InputError

_EXAMPLES: Final = """\
examples:
  nri-resmgr simulate --topology 2s2n8c2t pods.yaml         a synthetic machine
  nri-resmgr simulate --topology node7.tgz deployment.yaml  a dump of another one
  nri-resmgr simulate --config-file a.yaml --against b.yaml pods.yaml
  nri-resmgr simulate --picture node.svg pods.yaml          this machine, as a picture
  nri-resmgr simulate --against b.yaml --picture both.html pods.yaml
  nri-resmgr simulate --topology node7.tgz manifests/ extra.yaml
  nri-resmgr simulate --cluster nodes/ deployment.yaml      a rollout, node by node
  helm template my-chart | nri-resmgr simulate --topology node7.tgz --fail-on-refused -

WORKLOAD is a scenario, Kubernetes manifests, a folder of these, or - for standard
input. Objects of all kinds that have a pod template are read.

exit status: 0 done, also if containers were refused; 1 the two configurations of
--against differ, or with --fail-on-refused something was refused; 2 bad input
"""


@dataclass(eq=False)
class BadFlags(InputError):
    """Arguments do not go together."""

    why: str

    def __str__(self) -> str:
        return self.why


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Place a workload by the real policy, on this machine, on another one or on "
        "the nodes of a cluster. Show placements, what is refused, and the headroom."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "workloads",
        type=Path,
        nargs="*",
        metavar="WORKLOAD",
        help="a scenario, or manifests: files, folders, and - for standard input",
    )
    parser.add_argument(
        "--cluster",
        type=Path,
        metavar="FOLDER",
        help="dumps of nodes, NODE.tgz, and manifests of their pods; roll WORKLOAD, if "
        "given, out to the nodes, and show each",
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
    add_picture_flag(parser, "the machine, before and after with --against,")
    parser.add_argument(
        "--fail-on-refused",
        action="store_true",
        help="exit with status 1 if a request is refused",
    )
    add_output(parser, wide="a line for each replica")


def run(options: argparse.Namespace) -> int:
    """Play the workload, with one or two configurations, and print the result."""
    _check(options)
    # The tables show the decisions; only warnings, as of the configuration, are new.
    configure_logging("warning", LogFormat.TEXT)
    levels.set("app.observing.refusal_log", "error")
    return (_simulate if options.cluster is None else simulate_cluster)(options)


def _check(options: argparse.Namespace) -> None:
    if options.cluster is None and not options.workloads:
        raise BadFlags("WORKLOAD is missing; see nri-resmgr simulate --help")
    if options.cluster is not None and options.topology:
        raise BadFlags("--topology: the folder of --cluster has the machines")
    if options.cluster is not None and options.picture:
        raise BadFlags("--picture draws one machine, and --cluster has several")


def _simulate(options: argparse.Namespace) -> int:
    scenario = read_workloads(*read_texts(options.workloads))
    spec = options.topology or scenario.machine
    machine = named_machine(spec) if spec else this_machine(options)
    # A synthetic machine has no cgroups, unless their folder is named besides.
    has_host = not spec or options.host_root != "/"
    tree = HostTree(options.host_root) if has_host else None
    files = configurations(options)
    total = len(files) * scenario.pods
    with Progress(standard_error(), total, "pods simulated") as progress:
        found, *others = (
            findings_of(played(machine, scenario, file, tree, progress))
            for file in files
        )
    if options.picture:
        write_picture(picture_of(found, *others), options.picture)
    is_refused = any(one.refusals for one in (found, *others))
    status = int(options.fail_on_refused and is_refused)
    if not others:
        print(show_findings(found, options.output, scenario))
        return status
    text, differ = show_changes(found, others[0], options.output, scenario)
    print(text)
    return int(differ) or status
