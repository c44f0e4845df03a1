"""``nri-resmgr simulate --cluster``: a rollout on the nodes of a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from nri_resmgr.cli.cluster_folder import read_cluster
from nri_resmgr.cli.played import configurations, played
from nri_resmgr.cli.progress import Progress, standard_error
from nri_resmgr.cli.render_cluster import show_cluster, show_cluster_changes
from nri_resmgr.cli.workload_files import read_texts
from nri_resmgr.log.levels import levels
from nri_resmgr.log.line_style import line_style
from nri_resmgr.scenario.cluster import Cluster, ClusterNode, cluster_of
from nri_resmgr.scenario.cluster_findings import ClusterFindings, NodeFindings
from nri_resmgr.scenario.dealing import PlayedNode, deal
from nri_resmgr.scenario.findings import findings_of
from nri_resmgr.scenario.manifests import (
    BadFile,
    counted,
    read_objects,
    without_owned,
    workload_of,
)
from nri_resmgr.scenario.objects import Found
from nri_resmgr.scenario.steps import Scenario
from nri_resmgr.topology import Machine
from nri_resmgr.values import InputError


def simulate_cluster(options: argparse.Namespace) -> int:
    """Play what happens on each node, and print it; return the exit status."""
    folder = read_cluster(options.cluster)
    applied, rollout = _rollout(options.workloads)
    cluster = cluster_of(folder.objects, applied, folder.machines)
    read = Scenario(
        machine="",
        document="",
        steps=(),
        left_out=(*cluster.left_out, *folder.unread, *rollout.left_out),
        skipped=counted((*cluster.skipped, *rollout.skipped)),
        by_shape=rollout.by_shape,
    )
    files = configurations(options)
    total = len(files) * cluster.pods
    with Progress(standard_error(), total, "pods simulated") as progress:
        found, *against = (
            _played(cluster, folder.machines, file, progress) for file in files
        )
    is_refused = any(run.has_refusals for run in (found, *against))
    status = int(options.fail_on_refused and is_refused)
    if not against:
        print(show_cluster(found, options.output, read))
        return status
    text, differ = show_cluster_changes(found, against[0], options.output, read)
    print(text)
    return int(differ) or status


def _rollout(paths: list[Path]) -> tuple[list[Found], Scenario]:
    """Return the objects that are applied, and how they were read."""
    if not paths:
        return [], Scenario("", "", ())
    texts, unread = read_texts(paths)
    applied = list(without_owned(read_objects(texts)))
    return applied, workload_of([*applied, *unread])


def _played(
    cluster: Cluster,
    machines: Mapping[str, Machine],
    config_file: Path | None,
    progress: Progress,
) -> ClusterFindings:
    # The result has the containers that fall back.
    levels.set("app.observing.decision_log", "error")
    nodes = []
    for one in cluster.nodes:
        line_style.context = {"node": one.name}
        nodes.append(_played_node(one, machines[one.name], config_file, progress))
    line_style.context = {}
    dealt = deal(cluster.new, nodes, progress.advance)
    return ClusterFindings(
        nodes=tuple(
            NodeFindings(one, findings_of(after.node))
            for one, after in zip(cluster.nodes, nodes, strict=True)
        ),
        new=dealt,
    )


def _played_node(
    one: ClusterNode, machine: Machine, config_file: Path | None, progress: Progress
) -> PlayedNode:
    try:
        node = played(machine, one.scenario, config_file, None, progress)
    except InputError as mistake:
        raise BadFile(f"node {one.name}", mistake) from None
    return PlayedNode(one.name, node, len(one.scenario.steps))
