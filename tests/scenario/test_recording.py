"""Recordings are whole, bounded, and silent of what pods keep to themselves."""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from nri_proto import nri_pb2
from nri_resmgr.app.configuration.status import Setting
from nri_resmgr.cli.replay import print_recording
from nri_resmgr.policy.decision import PinUpdate, Reason
from nri_resmgr.policy.events import Pin
from nri_resmgr.policy.rules import Rule
from nri_resmgr.recordings.entries import (
    Answered,
    BadRecording,
    Called,
    Configured,
    Decided,
    Entry,
    Header,
    MachineChanged,
    RecordedCheckpoint,
    RecordedRefusal,
    Recording,
)
from nri_resmgr.recordings.file import (
    CannotRecord,
    RecordingFile,
    RecordingFull,
)
from nri_resmgr.recordings.recorder import MOST_WAITING, Recorder, open_recording
from nri_resmgr.recordings.secrets import without_secrets
from nri_resmgr.recordings.text import entry_line, header_line, load_recording
from nri_resmgr.scenario.replay import Replay
from nri_resmgr.stub.observer import Sender, Tapped
from nri_resmgr.topology.hints import Hint
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, NodeSet
from tests.cli.command import ROOT
from tests.examples import examples
from tests.scenario.recorded import churn, load, recorded_node, replayed
from tests.waiting import until

HEADER = Header("1.2", 17, parse_spec("1s2n2c1t"), dry_run=True, has_env=True)
REQUEST = nri_pb2.CreateContainerRequest(
    pod=nri_pb2.PodSandbox(id="p", name="p", namespace="default"),
    container=nri_pb2.Container(id="c", pod_sandbox_id="p", name="c"),
)
ENTRIES: tuple[Entry, ...] = (
    Configured(17, "kind: x"),
    Called(18, 1, "CreateContainer", REQUEST),
    Answered(19, 1, "CreateContainer", None, 8, "no room", is_ours=True),
    Decided(
        20,
        "Created",
        (Reason(Rule.WHOLE_CPUS, "c", "a/b/c", CpuSet.of(1), mems=NodeSet.of(0)),),
        (("c", (Hint("nic", CpuSet.of(1), NodeSet.of(0)),)),),
        (PinUpdate("d", Pin(CpuSet.of(1), NodeSet.of(0), 7)),),
    ),
    Called(21, 2, "UpdateContainers", nri_pb2.UpdateContainersRequest(), is_ours=True),
    Answered(22, 2, "UpdateContainers", nri_pb2.UpdateContainersResponse()),
    RecordedCheckpoint(17, "{}"),
    RecordedRefusal(22, "a/b/c", "no room"),
    MachineChanged(23, parse_spec("1s1n2c1t")),
)


def written() -> list[str]:
    return [header_line(HEADER), *map(entry_line, ENTRIES)]


def test_a_written_recording_is_read_back() -> None:
    assert load_recording(iter(written()), "rec") == Recording(HEADER, ENTRIES)


def test_names_of_entries_in_json_are_stable(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_recording(Recording(HEADER, ENTRIES), "json")
    rows = list(map(json.loads, capsys.readouterr().out.splitlines()))

    assert {row["apiVersion"] for row in rows} == {"cli.nri/v1"}
    assert [row["kind"] for row in rows] == [
        *("configured", "called", "answered", "decided", "called", "answered"),
        *("remembered", "refused", "machinechanged"),
    ]


@pytest.mark.parametrize("kept", range(1, 60, 7))
def test_a_recording_that_is_cut_off_counts_as_far_as_it_is_whole(kept: int) -> None:
    *whole, last = written()

    found = load_recording(iter([*whole, last[:kept]]), "rec")

    assert found.entries == ENTRIES[:-1]
    assert found.cut == f"rec: line {len(ENTRIES) + 1}: cut off, or not JSON"


@pytest.mark.parametrize(
    ("first", "sentence"),
    [
        pytest.param("", "line 1: not a recording: cut off, or not JSON", id="empty"),
        pytest.param("[1]", "not a recording of nri-resmgr run --record", id="other"),
        pytest.param(
            '{"nri-resmgr recording": 2}',
            "format 2, this version reads 1",
            id="a later format",
        ),
        pytest.param(
            '{"nri-resmgr recording": 1, "version": "", "time": 0, "machine": {}}',
            "not a recording: not a machine",
            id="no machine",
        ),
    ],
)
def test_an_invalid_recording_is_refused(first: str, sentence: str) -> None:
    with pytest.raises(BadRecording) as raised:
        load_recording(iter([first]), "rec")

    assert sentence in str(raised.value)


_anything = st.recursive(
    st.none() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
)
_rows = st.dictionaries(
    st.sampled_from(
        ["time", "call", "answer", "number", "body", "reasons", "decided", "machine"]
    ),
    _anything | st.sampled_from(["CreateContainer", "Synchronize", "AAAA", 3]),
)


@examples(2)
@given(st.lists(st.text(max_size=30) | _rows.map(json.dumps), max_size=4))
async def test_any_line_is_read_or_ends_the_recording(lines: list[str]) -> None:
    found = load_recording(iter([header_line(HEADER), *lines]), "rec")

    assert bool(found.cut) == (len(found.entries) < len(lines))
    await Replay(found.header, found.entries).run()


def test_secrets_of_pods_are_removed() -> None:
    applied = "kubectl.kubernetes.io/last-applied-configuration"
    container = nri_pb2.Container(
        id="c",
        env=["TOKEN=hidden"],
        args=["--password=hidden"],
        annotations={"kept": "yes"},
        hooks=nri_pb2.Hooks(prestart=[nri_pb2.Hook(path="x", env=["A=hidden"])]),
    )
    pod = nri_pb2.PodSandbox(id="p", annotations={applied: "hidden", "kept": "yes"})
    messages = (
        nri_pb2.CreateContainerRequest(pod=pod, container=container),
        nri_pb2.SynchronizeRequest(pods=[pod], containers=[container]),
        nri_pb2.StateChangeEvent(pod=pod, container=container),
    )

    for message in messages:
        before = message.SerializeToString()
        raised = without_secrets(message)

        assert b"hidden" not in raised.SerializeToString()
        assert str(raised).count('"yes"') == 2
        assert message.SerializeToString() == before


async def test_nothing_hidden_reaches_the_file_and_nothing_else_reads_it(
    tmp_path: Path,
) -> None:
    async with recorded_node(tmp_path) as node:
        await churn(node.runtime, 3, 10)

    assert stat.S_IMODE(node.file.stat().st_mode) == 0o600
    assert any(isinstance(one, Called) for one in load(node.file).entries)
    for entry in load(node.file).entries:
        if isinstance(entry, Called | Answered) and entry.body:
            assert b"hidden" not in entry.body.SerializeToString().lower()


async def test_at_its_limit_it_ends_with_a_whole_line_and_the_node_is_served_on(
    tmp_path: Path,
) -> None:
    async with recorded_node(tmp_path, limit=20_000) as node:
        await churn(node.runtime, 3, 40)
        there = len(node.plugin.state.ledger.entries)

    assert there > 3
    assert node.file.stat().st_size <= 20_000
    assert load(node.file).cut == ""
    assert (await replayed(node.file)).differences == ()


def test_an_earlier_recording_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "rec"
    for text in ("first\n", "second\n"):
        file = RecordingFile(str(path), 100)
        file.write(text)
        file.close()

    assert path.read_text() == "second\n"
    assert (tmp_path / "rec.old").read_text() == "first\n"


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    # A file system of so many bytes would need root; a limit on files does as well.
    path, before = tmp_path / "rec", resource.getrlimit(resource.RLIMIT_FSIZE)
    file = RecordingFile(str(path), 1 << 20)
    file.write("1234\n")
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            file.write("123456789\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)

    assert path.read_text() == "1234\n"
    # It goes on with the next whole line when there is room again.
    file.write("123456789\n")
    assert path.read_text() == "1234\n123456789\n"
    file.close()


async def test_what_cannot_be_written_waits_and_is_written_later(
    tmp_path: Path,
) -> None:
    path, before = tmp_path / "rec", resource.getrlimit(resource.RLIMIT_FSIZE)
    recorder = Recorder(RecordingFile(str(path), 1 << 20), HEADER)
    for _ in range(3):
        recorder.tap(Tapped(Sender.RUNTIME, "CreateContainer", REQUEST))
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            await recorder.run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert load(path).entries == ()

    running = asyncio.create_task(recorder.run())
    recorder.tap(Tapped(Sender.RUNTIME, "CreateContainer", REQUEST))
    await until(lambda: len(load(path).entries) == 4)
    running.cancel()
    recorder.tap(Tapped(Sender.RUNTIME, "CreateContainer", REQUEST))
    recorder.close()

    numbers = [one.number for one in load(path).entries if isinstance(one, Called)]
    assert (numbers, load(path).cut) == ([1, 2, 3, 4, 5], "")
    assert recorder.setting == Setting("recording", str(path), "--record")


async def test_it_ends_where_more_waits_than_memory_allows(tmp_path: Path) -> None:
    file = tmp_path / "rec"
    recorder = Recorder(RecordingFile(str(file), 1 << 30), HEADER)
    large = nri_pb2.ConfigureRequest(config="x" * (4 << 20))
    with capture_logs() as lines:
        for _ in range(9):
            recorder.tap(Tapped(Sender.RUNTIME, "Configure", large))

    why = "more than 32Mi wait for the disk"
    assert lines == [{"event": "recording.ended", "why": why, "log_level": "error"}]
    assert recorder.setting.value == f"{file}, ended: {why}"
    await recorder.run()
    recorder.close()
    assert load(file).entries == ()


WAITING: Final = """
import sys
from pathlib import Path
from nri_proto import nri_pb2
from nri_resmgr.recordings.entries import Header
from nri_resmgr.recordings.file import RecordingFile
from nri_resmgr.recordings.recorder import Recorder
from nri_resmgr.stub.observer import Sender, Tapped
from nri_resmgr.topology.synthetic import parse_spec

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

header = Header("1", 0, parse_spec("1s2c1t"))
recorder, number = Recorder(RecordingFile(sys.argv[1], 1 << 30), header), 0
before, most = resident(), 0
while "ended" not in recorder.setting.value:
    request = nri_pb2.RunPodSandboxRequest()
    for at in range(20_000):
        request.pod.labels[f"{number}-{at}"] = "1"
    recorder.tap(Tapped(Sender.RUNTIME, "RunPodSandbox", request))
    recorder.tap(Tapped(Sender.PLUGIN, "RunPodSandbox", request, request))
    most, number = max(most, resident() - before), number + 1
print(most)
"""


@pytest.mark.process
def test_waiting_records_take_little_more_than_their_bytes(tmp_path: Path) -> None:
    """As objects, 32 MiB of pods with many small labels took 300 MiB."""
    done = subprocess.run(
        [sys.executable, "-c", WAITING, str(tmp_path / "rec")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    most = int(done.stdout.splitlines()[-1])  # after the line of the end
    assert MOST_WAITING / 2 < most < 2 * MOST_WAITING


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        pytest.param("nowhere/rec", "no such file or directory", id="no folder"),
        pytest.param(".", "it is a folder", id="a folder"),
    ],
)
def test_a_file_that_cannot_be_made_is_reported(
    path: str, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(CannotRecord) as raised:
        RecordingFile(str(tmp_path / path), 1)

    assert sentence in str(raised.value)


def test_a_limit_below_the_header_is_reported(tmp_path: Path) -> None:
    options = argparse.Namespace(
        record=str(tmp_path / "rec"),
        record_limit="10",
        record_env=False,
        dry_run=False,
        unsolicited_updates="auto",
    )
    with pytest.raises(CannotRecord, match="it has reached --record-limit, 10"):
        open_recording(options, HEADER.machine)


def test_more_than_fits_is_not_begun(tmp_path: Path) -> None:
    file = RecordingFile(str(tmp_path / "rec"), 10)
    file.write("1234\n")

    with pytest.raises(RecordingFull):
        file.write("123456\n")

    assert (tmp_path / "rec").read_text() == "1234\n"
    file.close()
