"""``nri-resmgr agent``: connects a node with its cluster."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_resmgr.agent.agent import Agent
from nri_resmgr.agent.api import ApiClient, find_access
from nri_resmgr.agent.api.access import find_node_name
from nri_resmgr.agent.configuration import (
    CONFIG_MAP_SOURCE,
    ConfigScope,
    ConfigSource,
    custom_resources,
)
from nri_resmgr.agent.options import AgentOptions
from nri_resmgr.agent.startup_taint import check_key
from nri_resmgr.cli.flags import (
    Parser,
    add_control_flag,
    add_endpoint_flags,
    add_log_flags,
    one_of,
)
from nri_resmgr.daemon.log_setup import log_in_use
from nri_resmgr.policies import known_kinds
from nri_resmgr.process.endpoint import read_endpoint
from nri_resmgr.values import InputError

_NAMESPACE: Final = "kube-system"
"""The default of nri-plugins and of CRI Resource Manager."""

_SPOOL: Final = "/var/lib/nri-resmgr-agent"
"""On a disk, so that it outlives a restart of the node without an API server."""

_TAINT: Final = "--startup-taint"

_EXAMPLES: Final = """\
examples:
  nri-resmgr agent                                     in a pod, with NODE_NAME set
  nri-resmgr agent --kubeconfig /etc/nri-resmgr/kubeconfig --node-name "$(hostname)"
  nri-resmgr agent --source config-maps                names of CRI Resource Manager

The agent needs no privileges on the node. Documents of the cluster are handed to the
daemon as files in the spool folder, which the daemon follows with the same --spool. See
docs/cluster.md.

exit status: 0 after SIGTERM; 1 a part cannot be started again; 2 bad input
"""


@dataclass(eq=False)
class UnknownKind(InputError):
    """``--kinds`` has a kind that no installed package has."""

    kind: str
    known: Sequence[str]

    def __str__(self) -> str:
        return f"--kinds: unknown kind {self.kind!r}, expected {', '.join(self.known)}"


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Hand the configuration of the cluster to the daemon, and report the node's "
        "status to the cluster."
    )
    parser.epilog = _EXAMPLES
    parser.add_flag(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="kubeconfig of the cluster; by default the ServiceAccount of this pod",
    )
    parser.add_flag(
        "--api-server",
        default="",
        metavar="URL",
        help="address of the API server, instead of that of the kubeconfig or pod",
    )
    parser.add_flag(
        "--node-name",
        default="",
        metavar="NAME",
        help="name of this node, by default that of the variable NODE_NAME",
    )
    parser.add_flag(
        "--config-namespace",
        default="",
        metavar="NAMESPACE",
        help="namespace of the configurations, by default that of the pod or "
        f"kubeconfig, else {_NAMESPACE}",
    )
    parser.add_flag(
        "--source",
        type=one_of("custom-resources", "config-maps"),
        default="custom-resources",
        metavar="SOURCE",
        help="where configurations are: custom-resources, or config-maps with the "
        "names of CRI Resource Manager",
    )
    parser.add_flag(
        "--kinds",
        default="",
        metavar="KINDS",
        help="kinds of custom resources to watch, separated by commas; by default all",
    )
    parser.add_switch(
        "--config-fall-through",
        "use the default where a node has a group without a configuration",
    )
    parser.add_flag(
        "--spool",
        default=_SPOOL,
        metavar="DIR",
        help=f"folder that the daemon follows, default {_SPOOL}",
    )
    parser.add_flag(
        _TAINT,
        default="",
        metavar="KEY",
        help="taint to remove from the Node once the daemon serves its runtime, such "
        "as nri-resmgr.io/not-ready; by default none",
    )
    add_control_flag(parser)
    add_endpoint_flags(parser)
    add_log_flags(parser)


def run(options: argparse.Namespace) -> int:
    """Run the agent until a signal arrives."""
    with log_in_use(options):
        asyncio.run(_run(options))
    return 0


async def _run(options: argparse.Namespace) -> None:
    # Before the cluster is looked for: a wrong flag is wrong without one, too.
    source = _source_of(options)
    taint = check_key(_TAINT, options.startup_taint)
    http = _checked("--http-endpoint", options.http_endpoint)
    health = _checked("--health-endpoint", options.health_endpoint)
    kubeconfig = Path(options.kubeconfig) if options.kubeconfig else None
    access = find_access(kubeconfig, options.api_server or None)
    settings = AgentOptions(
        scope=ConfigScope(
            node=find_node_name(options.node_name or None),
            namespace=options.config_namespace or access.namespace or _NAMESPACE,
            source=source,
            fall_through=options.config_fall_through,
        ),
        spool=Path(options.spool),
        control_socket=options.control_socket,
        http_endpoint=http,
        health_endpoint=health,
        startup_taint=taint,
    )
    async with ApiClient.open(access) as api:
        await Agent(api, settings).run()


def _checked(flag: str, endpoint: str) -> str:
    if endpoint:
        read_endpoint(flag, endpoint)
    return endpoint


def _source_of(options: argparse.Namespace) -> ConfigSource:
    if options.source == "config-maps":
        return CONFIG_MAP_SOURCE
    kinds = [one.strip() for one in options.kinds.split(",") if one.strip()]
    known = known_kinds()
    for kind in kinds:
        if kind not in known:
            raise UnknownKind(kind, known)
    return custom_resources(kinds)
