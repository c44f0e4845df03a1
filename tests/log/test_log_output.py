"""Where log lines go, and what is in them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from nri_resmgr.log.syslog import SyslogLogger
from tests.cli.command import ROOT

pytestmark = pytest.mark.process

SPEAK = """
import structlog
from nri_resmgr.log.output import LogFormat, configure_logging
configure_logging({level!r}, LogFormat({log_format!r}))
log = structlog.get_logger("x")
log.debug("d"); log.info("noun.verbed", cpus="0-3"); log.warning("w")
try:
    1 / 0
except ZeroDivisionError as error:
    log.error("e", exc_info=error)
"""


def spoken(level: str, log_format: str) -> list[str]:
    code = SPEAK.format(level=level, log_format=log_format)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    return done.stderr.splitlines()


@pytest.mark.parametrize(
    ("level", "events"),
    [
        ("debug", ["d", "noun.verbed", "w", "e"]),
        ("info", ["noun.verbed", "w", "e"]),
        ("warning", ["w", "e"]),
        ("error", ["e"]),
    ],
)
def test_lines_below_the_level_are_not_made(level: str, events: list[str]) -> None:
    lines = [json.loads(line) for line in spoken(level, "json")]

    assert [line["event"] for line in lines] == events


def test_json_has_the_fields_and_the_traceback_in_one_line() -> None:
    lines = [json.loads(line) for line in spoken("info", "json")]
    times = [line.pop("timestamp") for line in lines]

    assert lines[0] == {"event": "noun.verbed", "cpus": "0-3", "level": "info"}
    assert "ZeroDivisionError" in lines[-1]["exception"]
    assert all(time.endswith("Z") for time in times)


def test_text_has_no_colours_where_nobody_sees_them() -> None:
    lines = spoken("info", "text")

    assert "cpus=0-3" in lines[0]
    assert "\x1b" not in "".join(lines)
    assert lines[-1] == "ZeroDivisionError: division by zero"


def test_syslog_gets_a_datagram_a_line_with_its_severity(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as system:
        system.bind(str(tmp_path / "log"))
        system.settimeout(2)
        logger = SyslogLogger.factory(str(tmp_path / "log"))()
        for say in (logger.debug, logger.info, logger.warning, logger.error):
            say("pin\u2713\udcff")
        lines = [system.recv(4096).decode() for _ in range(4)]
        logger.close()

    assert [line.partition(">")[0] for line in lines] == ["<31", "<30", "<28", "<27"]
    assert all(line.endswith("]: pin\u2713?") for line in lines)
    assert all("nri-resmgr[" in line for line in lines)


def test_nobody_at_the_syslog_socket_does_no_harm(tmp_path: Path) -> None:
    logger = SyslogLogger(str(tmp_path / "none"))
    logger.error("lost")
    logger.close()


def test_a_full_syslog_socket_does_not_block(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        deaf.bind(str(tmp_path / "log"))
        logger = SyslogLogger(str(tmp_path / "log"))
        for _ in range(2000):
            logger.info("x" * 1000)
        logger.close()
