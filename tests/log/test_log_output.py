"""Where log lines go, and what is in them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

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
    return printed(SPEAK.format(level=level, log_format=log_format))


def printed(code: str) -> list[str]:
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


def test_text_has_no_colours_where_nothing_sees_them() -> None:
    lines = spoken("info", "text")

    assert "cpus=0-3" in lines[0]
    assert "\x1b" not in "".join(lines)
    assert lines[-1] == "  ZeroDivisionError: division by zero"


SWITCH = """
import os, signal
from nri_resmgr.log import Logger
from nri_resmgr.log.levels import levels
from nri_resmgr.log.output import LogFormat, configure_logging
configure_logging("info", LogFormat.JSON)
app, stub = Logger("nri_resmgr.app.plugin.engine"), Logger("nri_resmgr.stub.link")
def speak(when):
    app.debug("app", when=when)
    stub.debug("stub", when=when)
speak("before")
levels.set("app", "debug")
speak("app")
levels.toggle_debug()
speak("all")
levels.toggle_debug()
levels.set("stub.*", "error")
stub.warning("stub", when="errors only")
levels.set("*", "info")
speak("after")
"""


def test_components_are_switched_while_the_program_runs() -> None:
    lines = [json.loads(line) for line in printed(SWITCH)]

    assert [(line["event"], line["when"]) for line in lines] == [
        ("app", "app"),
        ("app", "all"),
        ("stub", "all"),
    ]


LOST = """
import os
from nri_resmgr.log import Logger
from nri_resmgr.log.output import LogFormat, configure_logging
configure_logging("info", LogFormat.JSON)
class Unprintable:
    def __repr__(self):
        raise MemoryError
    __str__ = __repr__
log = Logger("nri_resmgr.x")
log.info("before")
log.info("lost", field=Unprintable())
log.error("lost", field=Unprintable())
log.info("after")
"""


def test_a_line_that_cannot_be_made_is_lost_and_counted() -> None:
    before, after, lost = [json.loads(line) for line in printed(LOST)]

    assert (before["event"], after["event"]) == ("before", "after")
    assert lost["event"] == "log.lines-lost"
    assert (lost["lines"], lost["why"]) == (2, "MemoryError")


OFF = """
import sys
from nri_resmgr.log import Logger
from nri_resmgr.log.levels import levels
levels.set("*", "info")
Logger("nri_resmgr.app.plugin.engine").debug("nothing")
print("structlog" in sys.modules, file=sys.stderr)
"""


def test_a_level_that_is_off_does_not_touch_structlog() -> None:
    assert printed(OFF) == ["False"]


MANY = """
from nri_resmgr.log import Logger
from nri_resmgr.log.output import LogFormat, configure_logging
configure_logging("info", LogFormat.JSON)
log = Logger("nri_resmgr.x")
for number in range(1000):
    log.info("one", number=number, text="x" * 100)
print("done", flush=True)
"""


def test_a_reader_that_comes_late_gets_all_lines_of_a_plugin() -> None:
    # More than a pipe holds: the program has gone on meanwhile, and waits at its end.
    with subprocess.Popen(
        [sys.executable, "-c", MANY],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "done\n"
        lines = [json.loads(line) for line in process.stderr]

    assert [line["number"] for line in lines] == [*range(1000)]
    assert process.returncode == 0
