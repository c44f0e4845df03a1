"""``nri-resmgr run``: the flags of the daemon, group by group."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from nri_resmgr.cli.flags import (
    Flags,
    add_control_flag,
    add_host_flags,
    one_of,
    seconds,
)
from nri_resmgr.daemon.defaults import (
    DEFAULT_INDEX,
    DEFAULT_NAME,
    DEFAULT_RUN_DIR,
    DEFAULT_STATE_DIR,
    DEFAULT_VERIFY_INTERVAL,
)
from nri_resmgr.daemon.run import run
from nri_resmgr.stub.transport import DEFAULT_SOCKET

__all__ = ["add_arguments", "run"]


def add_arguments(
    parser: argparse.ArgumentParser, environment: Mapping[str, str]
) -> None:
    """Describe the command; *environment* gives defaults."""
    parser.description = "Register with the runtime and decide where containers run."
    flags = Flags(parser, environment)
    _add_session_flags(flags)
    _add_configuration_flags(flags)
    add_host_flags(flags)
    _add_state_flags(flags)
    flags.add_switch("--dry-run", "decide and report, change nothing")
    _add_verification_flags(flags)
    _add_record_flags(flags)
    add_control_flag(flags)
    _add_insight_flags(flags)
    _add_log_flags(flags)


def _add_session_flags(flags: Flags) -> None:
    flags.add(
        "--nri-socket",
        metavar="PATH",
        help=f"path of the runtime's NRI socket, default {DEFAULT_SOCKET}",
    )
    flags.add(
        "--nri-plugin-name",
        metavar="NAME",
        help=f"name to register, default {DEFAULT_NAME}",
    )
    flags.add(
        "--nri-plugin-index",
        metavar="NN",
        help=f"place among the plugins, 00 to 99, default {DEFAULT_INDEX}",
    )
    flags.add(
        "--unsolicited-updates",
        type=one_of("auto", "always", "never"),
        default="auto",
        metavar="WHEN",
        help="when to send updates that no request asked for: always, never (replies "
        "carry them), or auto: if the runtime cannot dead-lock on them",
    )


def _add_configuration_flags(flags: Flags) -> None:
    flags.add(
        "--config-file",
        "--force-config",
        metavar="FILE",
        help="configuration to use; the runtime's drop-in file is ignored",
    )
    flags.add(
        "--fallback-config",
        metavar="FILE",
        help="configuration to use until the runtime sends one",
    )
    flags.add_switch(
        "--disable-policy-switch",
        "reject a configuration that would switch policies",
    )
    flags.add_switch(
        "--reset-config", "discard the last configuration from the runtime and exit"
    )


def _add_state_flags(flags: Flags) -> None:
    flags.add(
        "--state-dir",
        default=DEFAULT_STATE_DIR,
        metavar="PATH",
        help="folder of the state that a restart restores; empty for none "
        f"({DEFAULT_STATE_DIR})",
    )
    flags.add_switch(
        "--reset-policy",
        "discard saved placements and exit; those that the runtime reports stay",
    )
    flags.add(
        "--run-dir",
        default=DEFAULT_RUN_DIR,
        metavar="PATH",
        help="folder of the files that publish resources to containers "
        f"({DEFAULT_RUN_DIR})",
    )


def _add_verification_flags(flags: Flags) -> None:
    flags.add(
        "--verify-interval",
        type=seconds,
        default=DEFAULT_VERIFY_INTERVAL,
        metavar="SECONDS",
        help="seconds between two comparisons of cgroups with decisions; 0 for never "
        f"({DEFAULT_VERIFY_INTERVAL:g})",
    )
    flags.add(
        "--verify-repair",
        type=one_of("yes", "no"),
        default="yes",
        metavar="WHETHER",
        help="whether to update containers that differ: yes, or no to only report them",
    )


def _add_insight_flags(flags: Flags) -> None:
    flags.add(
        "--http-endpoint",
        default="",
        metavar="[ADDRESS]:PORT",
        help="address that serves metrics and health without authentication; "
        "off by default",
    )
    flags.add_switch("--metrics-per-container", "add metrics per pod and container")
    flags.add(
        "--otel-endpoint",
        default="",
        metavar="URL",
        help="collector for traces, by OTLP over HTTP; needs nri-resmgr[otel]",
    )
    flags.add(
        "--otel-sampling",
        default="",
        metavar="SHARE",
        help="share of requests to trace, 0 to 1, default 1",
    )


def _add_record_flags(flags: Flags) -> None:
    flags.add(
        "--record",
        default="",
        metavar="FILE",
        help="file to record all messages and decisions in, for `nri-resmgr replay`",
    )
    flags.add(
        "--record-limit",
        default="256Mi",
        metavar="SIZE",
        help="size at which a recording ends; the default holds about 10,000 pods",
    )
    flags.add_switch(
        "--record-env",
        "also record environments and arguments of containers, which may be secret",
    )


def _add_log_flags(flags: Flags) -> None:
    flags.add(
        "--log-level",
        type=one_of("debug", "info", "warning", "error"),
        default="info",
        metavar="LEVEL",
        help="lowest level to log: debug, info, warning or error",
    )
    flags.add(
        "--log-format",
        type=one_of("text", "json"),
        default="text",
        metavar="FORMAT",
        help="log format: text or json",
    )
    flags.add(
        "--log-debug",
        default="",
        metavar="PATTERNS",
        help="components to log at debug level, such as 'app.*,stub'",
    )
    flags.add(
        "--log-to",
        default="auto",
        metavar="WHERE",
        help="auto, stderr, syslog, journald, or a file; auto is standard error, or "
        "the system's log if that is /dev/null",
    )
