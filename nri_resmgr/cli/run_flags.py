"""The flags of ``run``, group by group."""

from __future__ import annotations

from nri_resmgr.cli.flags import Flags, one_of, seconds
from nri_resmgr.daemon.defaults import (
    DEFAULT_CONTROL_SOCKET,
    DEFAULT_INDEX,
    DEFAULT_NAME,
    DEFAULT_RUN_DIR,
    DEFAULT_STATE_DIR,
    DEFAULT_VERIFY_INTERVAL,
)
from nri_resmgr.stub.transport import DEFAULT_SOCKET


def add_run_flags(flags: Flags) -> None:
    """Add all of them."""
    _add_session_flags(flags)
    _add_configuration_flags(flags)
    add_host_flags(flags)
    _add_state_flags(flags)
    flags.add_switch("--dry-run", "decide and report, adjust nothing")
    _add_verification_flags(flags)
    _add_record_flags(flags)
    add_control_flag(flags)
    _add_insight_flags(flags)
    _add_log_flags(flags)


def add_host_flags(flags: Flags) -> None:
    """Add the flags of commands that read the host's machine."""
    flags.add(
        "--host-root",
        default="/",
        metavar="PATH",
        help="where the host's /sys and /proc are mounted",
    )
    flags.add(
        "--memory-kinds",
        default="",
        metavar="NODES=KIND",
        help="what memory is made of where the host tells it wrongly: '2-3=hbm 4=cxl'",
    )


def _add_session_flags(flags: Flags) -> None:
    flags.add("--nri-socket", metavar="PATH", help=f"default {DEFAULT_SOCKET}")
    flags.add("--nri-plugin-name", metavar="NAME", help=f"default {DEFAULT_NAME}")
    flags.add("--nri-plugin-index", metavar="NN", help=f"default {DEFAULT_INDEX}")
    flags.add(
        "--unsolicited-updates",
        type=one_of("auto", "always", "never"),
        default="auto",
        metavar="WHEN",
        help="tell the runtime of changes that no request asked for: always, never "
        "(they ride on replies), or where it cannot dead-lock on them: auto",
    )


def _add_configuration_flags(flags: Flags) -> None:
    flags.add(
        "--config-file",
        "--force-config",
        metavar="FILE",
        help="the only configuration; the runtime's drop-in file is ignored",
    )
    flags.add(
        "--fallback-config",
        metavar="FILE",
        help="the configuration until the runtime has handed one over",
    )
    flags.add_switch(
        "--disable-policy-switch",
        "take no document of another kind than placed the containers",
    )
    flags.add_switch(
        "--reset-config", "forget the last document of the runtime, and exit"
    )


def _add_state_flags(flags: Flags) -> None:
    flags.add(
        "--state-dir",
        default=DEFAULT_STATE_DIR,
        metavar="PATH",
        help=f"what a restart starts from; empty for nothing ({DEFAULT_STATE_DIR})",
    )
    flags.add_switch(
        "--reset-policy",
        "forget who has what, but for what the runtime tells, and exit",
    )
    flags.add(
        "--run-dir",
        default=DEFAULT_RUN_DIR,
        metavar="PATH",
        help=f"for files that tell containers what they have ({DEFAULT_RUN_DIR})",
    )


def _add_verification_flags(flags: Flags) -> None:
    flags.add(
        "--verify-interval",
        type=seconds,
        default=DEFAULT_VERIFY_INTERVAL,
        metavar="SECONDS",
        help="how often to compare what the kernel has in force with what was decided; "
        f"0 for never ({DEFAULT_VERIFY_INTERVAL:g})",
    )
    flags.add(
        "--verify-repair",
        type=one_of("yes", "no"),
        default="yes",
        metavar="WHETHER",
        help="update containers that differ: yes, or no to only tell of them",
    )


def add_control_flag(flags: Flags) -> None:
    """Add the flag of the daemon, and of commands that ask it."""
    flags.add(
        "--control-socket",
        default=DEFAULT_CONTROL_SOCKET,
        metavar="PATH",
        help="where root may ask the daemon; empty for nowhere "
        f"({DEFAULT_CONTROL_SOCKET})",
    )


def _add_insight_flags(flags: Flags) -> None:
    flags.add(
        "--http-endpoint",
        default="",
        metavar="[ADDRESS]:PORT",
        help="serve metrics and health there, to whoever asks; off by default",
    )
    flags.add_switch(
        "--metrics-per-container", "name pods and containers in the metrics"
    )
    flags.add(
        "--otel-endpoint",
        default="",
        metavar="URL",
        help="send traces to this collector by OTLP over HTTP; needs nri-resmgr[otel]",
    )
    flags.add(
        "--otel-sampling",
        default="",
        metavar="SHARE",
        help="the share of requests that are traced, 0 to 1; by default all",
    )


def _add_record_flags(flags: Flags) -> None:
    flags.add(
        "--record",
        default="",
        metavar="FILE",
        help="write all that is said and decided to a file, for `nri-resmgr replay`",
    )
    flags.add(
        "--record-limit",
        default="256Mi",
        metavar="SIZE",
        help="where a recording ends; the default has room for some 10,000 pods",
    )
    flags.add_switch(
        "--record-env",
        "record environments and arguments of containers, too; they may be secret",
    )


def _add_log_flags(flags: Flags) -> None:
    flags.add(
        "--log-level",
        type=one_of("debug", "info", "warning", "error"),
        default="info",
        metavar="LEVEL",
        help="debug, info, warning or error",
    )
    flags.add(
        "--log-format",
        type=one_of("text", "json"),
        default="text",
        metavar="FORMAT",
        help="text or json",
    )
    flags.add(
        "--log-debug",
        default="",
        metavar="PATTERNS",
        help="debug of these components, such as 'app.*,stub', whatever the level is",
    )
    flags.add(
        "--log-to",
        default="auto",
        metavar="WHERE",
        help="auto, stderr, syslog, journald, or a file; auto is standard error, and "
        "the system's log where that is /dev/null",
    )
