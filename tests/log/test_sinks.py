"""Where lines end up, and that no reader can block the program."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nri_resmgr.log.destination import UnusableLog, check_destination
from nri_resmgr.log.levels import DEBUG, ERROR, INFO, WARNING
from nri_resmgr.log.sinks import LogFile, Stream
from nri_resmgr.log.system_log import Journald, Syslog

NONE: dict[str, object] = {}


@pytest.fixture
def system(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as system:
        system.bind(str(tmp_path / "log"))
        system.settimeout(2)
        yield system


def test_syslog_gets_a_datagram_a_line_with_its_severity(
    tmp_path: Path, system: socket.socket
) -> None:
    syslog = Syslog(str(tmp_path / "log"))
    for level in (DEBUG, INFO, WARNING, ERROR):
        assert syslog.write(level, "pin\u2713\udcff", NONE)
    lines = [system.recv(4096).decode() for _ in range(4)]
    syslog.close()

    assert [line.partition(">")[0] for line in lines] == ["<31", "<30", "<28", "<27"]
    assert all(line.endswith("]: pin\u2713?") for line in lines)
    assert all("nri-resmgr[" in line for line in lines)


def test_journald_gets_the_fields_as_fields(
    tmp_path: Path, system: socket.socket
) -> None:
    journald = Journald(str(tmp_path / "log"))
    fields = {"event": "container.placed", "cpus": "0-3", "why so": "a\nb"}
    assert journald.write(WARNING, "container.placed cpus=0-3", fields)
    received = system.recv(4096)
    journald.close()

    assert received == b"".join(
        (
            b"PRIORITY=4\n",
            b"SYSLOG_IDENTIFIER=nri-resmgr\n",
            b"MESSAGE=container.placed cpus=0-3\n",
            b"NRI_RESMGR_EVENT=container.placed\n",
            b"NRI_RESMGR_CPUS=0-3\n",
            b"NRI_RESMGR_WHY_SO\n" + struct.pack("<Q", 3) + b"a\nb\n",
        )
    )


def test_lines_without_a_receiver_are_dropped(tmp_path: Path) -> None:
    for sink in (Syslog(str(tmp_path / "no")), Journald(str(tmp_path / "no"))):
        assert not sink.write(ERROR, "lost", NONE)
        sink.close()


def test_a_full_socket_does_not_block(tmp_path: Path, system: socket.socket) -> None:
    syslog = Syslog(str(tmp_path / "log"))
    taken = [syslog.write(INFO, "x" * 1000, NONE) for _ in range(2000)]
    syslog.close()

    assert taken[0]
    assert not taken[-1]
    assert b"x" in system.recv(4096)


def test_the_next_reader_of_a_socket_gets_the_next_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    syslog = Syslog(str(path))
    for _ in range(2):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as system:
            system.bind(str(path))
            assert syslog.write(INFO, "hello", NONE)
            assert system.recv(100).endswith(b"hello")
        path.unlink()
    syslog.close()


def test_a_pipe_that_nothing_reads_costs_lines_and_no_time() -> None:
    out, into = os.pipe()
    stream = Stream(into)
    began = time.monotonic()
    taken = [stream.write(INFO, "x" * 9000, NONE) for _ in range(500)]
    took = time.monotonic() - began
    os.set_blocking(out, False)
    before = os.read(out, 1 << 20)
    again = stream.write(INFO, "again", NONE)
    last = os.read(out, 100)
    os.close(out)
    os.close(into)

    assert (taken[0], taken[-1], again) == (True, False, True)
    assert took < 2  # 500 times the patience are ten seconds
    assert len(before) % 9001  # the last line has no end
    assert last == b"\nagain\n"


def test_a_reader_that_left_costs_lines_only() -> None:
    out, into = os.pipe()
    stream = Stream(into)
    os.close(out)

    assert not stream.write(INFO, "lost", NONE)
    os.close(into)


def test_a_moved_file_is_reopened(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = LogFile(str(path))
    log.write(INFO, "one", NONE)
    path.rename(tmp_path / "log.1")
    log.write(INFO, "two", NONE)
    path.unlink()
    log.write(INFO, "three", NONE)
    path.write_text("")  # as logrotate's copytruncate does
    log.write(INFO, "four", NONE)
    log.close()

    assert (tmp_path / "log.1").read_text() == "one\n"
    assert path.read_text() == "four\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_lines_are_lost_while_the_folder_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log = LogFile(str(folder / "log"))
    (folder / "log").unlink()
    folder.rmdir()
    lost = [log.write(INFO, "lost", NONE) for _ in range(2)]
    folder.mkdir()
    found = log.write(INFO, "found", NONE)
    log.close()

    assert (lost, found) == ([False, False], True)
    assert (folder / "log").read_text() == "found\n"


def test_a_full_disk_loses_lines() -> None:
    log = LogFile("/dev/full")

    assert not log.write(INFO, "lost", NONE)
    log.close()


@pytest.mark.parametrize(
    ("to", "why"),
    [
        ("journal", "expected one of auto, stderr, syslog, journald, or a path"),
        ("/dev/null/log", "cannot log to '/dev/null/log': not a directory"),
        ("/", "cannot log to '/': is a directory"),
    ],
)
def test_an_impossible_path_is_refused_at_once(to: str, why: str) -> None:
    with pytest.raises(UnusableLog, match=why):
        check_destination(to)


def test_a_file_may_be_named_without_being_there(tmp_path: Path) -> None:
    check_destination(str(tmp_path / "log"))
    check_destination("auto")
