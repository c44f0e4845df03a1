"""``nri-resmgr run``: the flags of the daemon, group by group."""

from __future__ import annotations

from typing import Final

from nri_resmgr.app.plugin.container_files import DESTINATION
from nri_resmgr.app.plugin.cpu_claims import DEFAULT_DRIVERS
from nri_resmgr.app.running.vm_pods import DEFAULT_VM_HANDLERS
from nri_resmgr.cli.flags import (
    Parser,
    add_control_flag,
    add_endpoint_flags,
    add_host_flags,
    add_log_flags,
    inner_path,
    one_of,
    seconds,
)
from nri_resmgr.daemon.defaults import (
    DEFAULT_INDEX,
    DEFAULT_MPOLSET,
    DEFAULT_NAME,
    DEFAULT_RUN_DIR,
    DEFAULT_STATE_DIR,
    DEFAULT_VERIFY_INTERVAL,
)
from nri_resmgr.daemon.run import run
from nri_resmgr.host.cdi import DEFAULT_CDI_DIR
from nri_resmgr.kubelet.sockets import DEFAULT_KUBELET_DIR
from nri_resmgr.stub.transport import DEFAULT_SOCKET

__all__ = ["add_arguments", "run"]

# Not wrapped: narrow enough for small terminals.
_EPILOG: Final = """\
examples:
  nri-resmgr run              serve this machine's runtime
  nri-resmgr run --dry-run    decide and report only
  nri-resmgr run --config-file my.yaml
  nri-resmgr run --log-level debug --log-to /tmp/log

signals:
  SIGHUP   read the configuration again, as `reload` does
  SIGUSR1  switch debug output on, or off again
  SIGTERM  answer open requests, restore the host, exit
  SIGINT   the same
"""


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = "Register with the runtime and decide where containers run."
    parser.epilog = _EPILOG
    _add_session_flags(parser)
    _add_configuration_flags(parser)
    add_host_flags(parser)
    _add_state_flags(parser)
    parser.add_switch("--dry-run", "decide and report, change nothing")
    _add_verification_flags(parser)
    _add_record_flags(parser)
    add_control_flag(parser)
    _add_insight_flags(parser)
    add_log_flags(parser)


def _add_session_flags(parser: Parser) -> None:
    parser.add_flag(
        "--nri-socket",
        metavar="PATH",
        help=f"path of the runtime's NRI socket, default {DEFAULT_SOCKET}",
    )
    parser.add_switch(
        "--wait-for-runtime",
        "wait for the NRI socket at the start, too, instead of ending without it",
    )
    parser.add_flag(
        "--nri-plugin-name",
        metavar="NAME",
        help=f"name to register, default {DEFAULT_NAME}",
    )
    parser.add_flag(
        "--nri-plugin-index",
        metavar="NN",
        help=f"place among the plugins, 00 to 99, default {DEFAULT_INDEX}",
    )
    parser.add_flag(
        "--unsolicited-updates",
        type=one_of("auto", "always", "never"),
        default="auto",
        metavar="WHEN",
        help="when to send updates that no request asked for: always, never (replies "
        "carry them), or auto: only with containerd of NRI 0.12.1 or newer, "
        "since others can dead-lock on them",
    )
    parser.add_flag(
        "--apply-updates",
        type=one_of("auto", "cgroup", "runtime"),
        default="auto",
        metavar="HOW",
        help="how running containers get changed CPUs and memory nodes: cgroup (files "
        "of their cgroups, at once), runtime (updates by the runtime), or auto: cgroup "
        "if cgroups can be written",
    )

    parser.add_flag(
        "--vm-handlers",
        type=_patterns,
        default=",".join(DEFAULT_VM_HANDLERS),
        metavar="PATTERNS",
        help="runtime handlers whose pods run in virtual machines, such as kata*,vm: "
        "their sandboxes are pinned to where their containers are; empty for none",
    )


def _patterns(text: str) -> tuple[str, ...]:
    return tuple(one for part in text.split(",") if (one := part.strip()))


def _add_configuration_flags(parser: Parser) -> None:
    parser.add_flag(
        "--config-file",
        "--force-config",
        metavar="FILE",
        help="configuration to use; the runtime's drop-in file and the cluster's "
        "documents are ignored",
    )
    parser.add_flag(
        "--fallback-config",
        metavar="FILE",
        help="configuration to use until the cluster or the runtime has one",
    )
    parser.add_flag(
        "--spool",
        metavar="PATH",
        help="folder into which nri-resmgr agent writes the cluster's configuration "
        "and adjustments; default none",
    )
    parser.add_flag(
        "--kubelet-dir",
        default=DEFAULT_KUBELET_DIR,
        metavar="PATH",
        help="root directory of the kubelet, whose sockets are used where they are: "
        "pods-api/pods-api.sock, pod-resources/kubelet.sock and device-plugins/"
        "kubelet.sock; none for no socket "
        f"({DEFAULT_KUBELET_DIR})",
    )
    parser.add_flag(
        "--cdi-dir",
        default=DEFAULT_CDI_DIR,
        metavar="PATH",
        help="folder of the CDI files of claims, which the runtime reads "
        f"({DEFAULT_CDI_DIR})",
    )
    parser.add_flag(
        "--cpu-drivers",
        default=",".join(DEFAULT_DRIVERS),
        metavar="NAME[,NAME...]",
        help="DRA drivers of CPUs whose claims are respected; empty for none "
        f"({','.join(DEFAULT_DRIVERS)})",
    )
    parser.add_switch(
        "--disable-policy-switch",
        "reject a configuration that would switch policies",
    )
    parser.add_switch(
        "--reset-config",
        "discard the last configuration of the cluster or the runtime and exit",
    )


def _add_state_flags(parser: Parser) -> None:
    parser.add_flag(
        "--state-dir",
        default=DEFAULT_STATE_DIR,
        metavar="PATH",
        help="folder of the state that a restart restores; empty for none "
        f"({DEFAULT_STATE_DIR})",
    )
    parser.add_switch(
        "--reset-policy",
        "discard saved placements and exit; those that the runtime reports stay",
    )
    parser.add_flag(
        "--run-dir",
        default=DEFAULT_RUN_DIR,
        metavar="PATH",
        help="folder of the files that publish resources to containers "
        f"({DEFAULT_RUN_DIR})",
    )
    parser.add_flag(
        "--mpolset",
        default=DEFAULT_MPOLSET,
        metavar="PATH",
        help="program that sets memory policies where the runtime cannot "
        f"({DEFAULT_MPOLSET})",
    )
    parser.add_flag(
        "--resource-path",
        type=inner_path,
        default=DESTINATION,
        metavar="PATH",
        help="folder in containers where the files of --run-dir are mounted "
        f"({DESTINATION})",
    )


def _add_verification_flags(parser: Parser) -> None:
    parser.add_flag(
        "--verify-interval",
        type=seconds,
        default=DEFAULT_VERIFY_INTERVAL,
        metavar="SECONDS",
        help="seconds between two comparisons of cgroups with decisions; 0 for never "
        f"({DEFAULT_VERIFY_INTERVAL:g})",
    )
    parser.add_flag(
        "--verify-repair",
        type=one_of("yes", "no"),
        default="yes",
        metavar="WHETHER",
        help="whether to update containers that differ: yes, or no to only report them",
    )


def _add_insight_flags(parser: Parser) -> None:
    add_endpoint_flags(parser)
    parser.add_switch(
        "--http-page",
        "serve a page of the node at --http-endpoint, too: its pools, pods and events, "
        "without authentication",
    )
    parser.add_switch("--metrics-per-container", "add metrics per pod and container")
    parser.add_flag(
        "--otel-endpoint",
        default="",
        metavar="URL",
        help="collector for traces, by OTLP over HTTP; needs nri-resmgr[otel]",
    )
    parser.add_flag(
        "--otel-sampling",
        default="",
        metavar="SHARE",
        help="share of requests to trace, 0 to 1, default 1",
    )


def _add_record_flags(parser: Parser) -> None:
    parser.add_flag(
        "--record",
        default="",
        metavar="FILE",
        help="file to record all messages and decisions in, for `nri-resmgr replay`",
    )
    parser.add_flag(
        "--record-limit",
        default="256Mi",
        metavar="SIZE",
        help="size at which a recording ends; the default holds about 10,000 pods",
    )
    parser.add_switch(
        "--record-env",
        "also record environments and arguments of containers, which may be secret",
    )
