"""The store of a plugin: what survives, and what happens to damaged files."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from nri_resmgr.sdk.store import (
    MOST,
    StateInUse,
    Store,
    UntrustedState,
)
from tests.cli.command import ROOT

FILE = "state.json"


class Counts(msgspec.Struct, frozen=True):
    """A stored value."""

    by_pod: dict[str, int]
    total: int = 0


def stored(folder: Path) -> Counts | None:
    store = Store(Counts, str(folder))
    try:
        return store.load()
    finally:
        store.close()


def save(folder: Path, value: Counts) -> bool:
    store = Store(Counts, str(folder))
    try:
        return store.save(value)
    finally:
        store.close()


def test_a_value_survives_its_process(tmp_path: Path) -> None:
    counts = Counts({"shop/web": 3}, 3)

    assert stored(tmp_path / "a" / "b") is None
    assert save(tmp_path / "a" / "b", counts)
    assert stored(tmp_path / "a" / "b") == counts


def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    save(folder, Counts({}))

    modes = [stat.S_IMODE(one.stat().st_mode) for one in (folder, folder / FILE)]
    assert modes == [0o700, 0o600]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param('{"by_pod": {"a": 1', id="torn"),
        pytest.param('{"by_pod": 5}', id="of another type"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param("\udcff", id="no UTF-8"),
    ],
)
def test_a_damaged_file_is_set_aside(text: str, tmp_path: Path) -> None:
    save(tmp_path / "state", Counts({}))
    content = text.encode("utf-8", "surrogateescape")
    (tmp_path / "state" / FILE).write_bytes(content)

    with capture_logs() as lines:
        assert stored(tmp_path / "state") is None

    (line,) = lines
    assert (line["event"], line["log_level"]) == ("store.set-aside", "error")
    assert Path(line["moved_to"]).read_bytes() == content
    assert not (tmp_path / "state" / FILE).exists()


KILLED = """
import sys
from nri_resmgr.sdk.store import Store
store = Store(list[int], sys.argv[1])
one, two = [1] * 1_000_000, [2] * 1_000_000
store.save(one)
print("begun", flush=True)
while True:
    store.save(two)
    store.save(one)
"""


@pytest.mark.process
def test_a_killed_process_leaves_a_whole_value(tmp_path: Path) -> None:
    for turn in range(12):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path / "state")],
            env={"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
        )
        with process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(turn / 250)  # at another point of the loop each time
            process.send_signal(signal.SIGKILL)
        store = Store(list[int], str(tmp_path / "state"))
        found = store.load()
        store.close()

        assert found in ([1] * 1_000_000, [2] * 1_000_000)


def test_a_value_is_bounded(tmp_path: Path) -> None:
    counts = Counts({"shop/web": 3}, 3)
    save(tmp_path / "state", counts)

    with capture_logs() as lines:
        assert not save(tmp_path / "state", Counts({"x" * MOST: 1}))

    assert [line["event"] for line in lines] == ["store.failed"]
    assert f"expected at most {MOST}" in lines[0]["why"]
    assert stored(tmp_path / "state") == counts


def test_a_folder_that_cannot_be_written_fails_no_request(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with capture_logs() as lines:
        assert not save(tmp_path / "file" / "state", Counts({}))

    assert [line["event"] for line in lines] == ["store.failed"]


def test_a_folder_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(UntrustedState, match="is no directory"):
        stored(tmp_path / "file" / "state")


def test_a_file_that_others_can_write_is_not_read(tmp_path: Path) -> None:
    save(tmp_path / "state", Counts({}))
    (tmp_path / "state" / FILE).chmod(0o666)

    with pytest.raises(UntrustedState):
        stored(tmp_path / "state")


def test_two_processes_cannot_use_a_folder(tmp_path: Path) -> None:
    first = Store(Counts, str(tmp_path / "state"))
    first.save(Counts({"a": 1}))
    try:
        with pytest.raises(StateInUse, match=str(os.getpid())):
            stored(tmp_path / "state")
        with capture_logs() as lines:
            assert not save(tmp_path / "state", Counts({}))
        assert first.load() == Counts({"a": 1})
    finally:
        first.close()

    assert [line["event"] for line in lines] == ["store.failed"]
    assert stored(tmp_path / "state") == Counts({"a": 1})


@pytest.mark.process
@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "/var/lib/nri-plugins/greeter"),
        ({"STATE_DIRECTORY": "/var/lib/a"}, "/var/lib/a"),
        ({"STATE_DIRECTORY": "/var/lib/a:/var/lib/b"}, "/var/lib/a"),
    ],
)
def test_the_folder_is_systemds_or_has_the_plugins_name(
    environment: dict[str, str], expected: str
) -> None:
    code = "from nri_resmgr.sdk.store import *; print(state_folder('greeter'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == expected
