"""What is too large is refused before it is in memory, with its size and bound."""

from __future__ import annotations

import asyncio
import errno
import gzip
import io
import re
import socket
import tarfile
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.cli.enable_runtime.files import HostFolder, UnusableConfig
from nri_resmgr.cli.install import Folders, NotInstalled, uninstall
from nri_resmgr.control.client import AnswerLost, Client
from nri_resmgr.host import bounded
from nri_resmgr.host.bounded import Bound, BoundedStream, read_lines, read_whole
from nri_resmgr.host.file_watch import WatchedFile
from nri_resmgr.host.machine.dump import BadDump, load_dump, load_files
from nri_resmgr.host.resctrl.files import MountedResctrl
from nri_resmgr.host.state_dir import StateDir, StateUnusable
from nri_resmgr.host.text_file import UnreadableFile, read_text_file
from nri_resmgr.host.tree import HostTree, UnreadableHostFile
from nri_resmgr.testing.errors import StartFailed
from nri_resmgr.testing.launch import discover
from tests.cli.command import ROOT, nri_resmgr

MIB: Final = 1 << 20
SMALL: Final = Bound(10, "a thing", "shorten it")


@pytest.mark.parametrize("size", [0, 9, 10, 11, 1000])
def test_a_bound_holds_to_the_byte(size: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a\n" * (size // 2) + b"a" * (size % 2))
    readers: tuple[Callable[[], object], ...] = (
        lambda: bounded.read_file(path, SMALL),
        lambda: read_whole(io.BytesIO(path.read_bytes()).read, SMALL),
        lambda: list(read_lines(path, SMALL)),
        lambda: BoundedStream(io.BytesIO(path.read_bytes()), SMALL).read(),
        lambda: BoundedStream(io.BytesIO(path.read_bytes()), SMALL).read(2000),
        lambda: bounded.check_size(size, SMALL),
    )

    for read in readers:
        if size <= SMALL.most:
            read()
            continue
        with pytest.raises(OSError, match="a thing may have 0 MiB: shorten it") as why:
            read()
        assert why.value.errno == errno.EFBIG


def test_a_line_is_bounded() -> None:
    assert bounded.read_line(io.BytesIO(b"123456789\nab"), SMALL) == b"123456789\n"
    with pytest.raises(OSError, match="it is larger"):
        bounded.read_line(io.BytesIO(b"0123456789\n"), SMALL)


# The places.


def large(path: Path, mebibytes: int) -> Path:
    """Make a sparse file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(mebibytes * MIB + 1)
    return path


def watched(folder: Path) -> None:
    WatchedFile(str(large(folder / "file", 100))).read()


def named(folder: Path) -> None:
    read_text_file(large(folder / "file", 100))


def endless(_: Path) -> None:
    read_text_file(Path("/dev/zero"))


def watched_endless(_: Path) -> None:
    WatchedFile("/dev/zero").read()


def of_kernel(folder: Path) -> None:
    large(folder / "proc/interrupts", 200)
    HostTree(folder).read("/proc/interrupts")


def of_kubelet(folder: Path) -> None:
    large(folder / "var/lib/kubelet/cpu_manager_state", 100)
    HostTree(folder).read("/var/lib/kubelet/cpu_manager_state")


def of_resctrl(folder: Path) -> None:
    large(folder / "schemata", 200)
    MountedResctrl(str(folder)).read("schemata")


def of_state(folder: Path) -> None:
    state = StateDir.open(str(folder / "state"))
    try:
        large(folder / "state/policy.checkpoint", 100).chmod(0o600)
        state.read("policy.checkpoint")
    finally:
        state.close()


def of_runtime(folder: Path) -> None:
    large(folder / "etc/containerd/config.toml", 100)
    HostFolder(str(folder)).read("/etc/containerd/config.toml")


def of_drop_in(folder: Path) -> None:
    large(folder / "conf/10-a.conf", 100)
    program = folder / "plugins/10-a"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    discover(folder / "plugins", folder / "conf")


def of_bomb(folder: Path) -> None:
    """Load an archive with a header of 300 MiB, which is 300 KiB compressed."""
    path = folder / "machine.tar.gz"
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 300 * MIB
    with gzip.open(path, "wb", compresslevel=1) as archive:
        archive.write(header.tobuf())
        for _ in range(300):
            archive.write(bytes(MIB))
    load_files(path)


PLACES: Final = (
    (watched, UnreadableFile, "file: it has 100.0 MiB, and a document may have 8 MiB"),
    (named, UnreadableFile, "file: it has 100.0 MiB, and a document may have 8 MiB"),
    (endless, UnreadableFile, "/dev/zero: it is larger, and a document may have 8"),
    (watched_endless, UnreadableFile, "/dev/zero: it is larger, and a document may"),
    (of_kernel, UnreadableHostFile, "/proc/interrupts: it is larger, and a kernel"),
    (of_kubelet, UnreadableHostFile, "cpu_manager_state: it is larger, and a kubelet"),
    (of_resctrl, OSError, "it has 200.0 MiB, and a kernel file may have 32 MiB"),
    (of_state, StateUnusable, "policy.checkpoint: it has 100.0 MiB, and a state file"),
    (of_runtime, UnusableConfig, "config.toml cannot be used: it has 100.0 MiB, and"),
    (of_drop_in, StartFailed, "it has 100.0 MiB, and a document may have 8 MiB"),
)


@pytest.mark.parametrize(("read", "kind", "why"), PLACES)
def test_too_large_inputs_are_refused_before_they_are_in_memory(
    read: Callable[[Path], None], kind: type[Exception], why: str, tmp_path: Path
) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(kind, match=re.escape(why)):
            read(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 40 * MIB
    finally:
        tracemalloc.stop()


def test_a_dump_is_bounded_unpacked(tmp_path: Path) -> None:
    with pytest.raises(BadDump, match="may have 256 MiB: make it with"):
        of_bomb(tmp_path)
    with pytest.raises(BadDump, match="not a dump of a machine"):
        load_dump(large(tmp_path / "zeros", 1))


def test_a_document_that_is_too_large_is_read_again_when_it_has_changed(
    tmp_path: Path,
) -> None:
    file = WatchedFile(str(large(tmp_path / "file", 100)))
    with pytest.raises(UnreadableFile):
        file.read()
    before = file.has_changed()
    Path(file.path).write_text("a")

    assert (before, file.has_changed(), file.read()) == (False, True, "a")


def test_no_state_is_written_that_could_not_be_read(tmp_path: Path) -> None:
    state = StateDir.open(str(tmp_path / "state"))
    state.write("policy", "old")
    largest = "a" * bounded.STATE_FILE.most
    with pytest.raises(StateUnusable, match=r"it has 64\.0 MiB, and a state file may"):
        state.write("policy", largest + "a")
    kept = state.read("policy")
    state.write("policy", largest)
    length = len(state.read("policy") or "")
    state.close()

    assert (kept, length) == ("old", len(largest))


def test_a_large_binary_is_not_taken_for_a_launcher(tmp_path: Path) -> None:
    path = large(tmp_path / "plugins/10-other", 1000)

    tracemalloc.start()
    try:
        with pytest.raises(NotInstalled):
            uninstall("other", Folders(tmp_path / "plugins", tmp_path / "conf"))
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()
    assert path.exists()


async def test_an_answer_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        server = threading.Thread(target=answer_for_ever, args=(listener,), daemon=True)
        server.start()
        client = Client(str(path))
        for ask in (
            lambda: client.get("/v1/state"),
            lambda: list(client.lines("/v1/events")),
        ):
            with pytest.raises(AnswerLost, match="an answer may have 64 MiB: check"):
                await asyncio.to_thread(ask)
        server.join(20)


def answer_for_ever(listener: socket.socket) -> None:
    for _ in range(2):
        connection, _ = listener.accept()
        with connection:
            connection.recv(1 << 16)
            try:
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                while True:
                    connection.sendall(b" " * MIB)
            except OSError:
                continue


@pytest.mark.process
def test_commands_name_the_remedy(tmp_path: Path) -> None:
    path = large(tmp_path / "file", 2000)
    for words in (("check", path), ("simulate", path), ("replay", path)):
        done = nri_resmgr(*words)
        shown = done.stdout + done.stderr

        assert done.returncode == 2
        assert shown.count("\n") == 1
        assert f"cannot read {path}: it has 2000.0 MiB, and a " in shown
    done = nri_resmgr("check", "-", given="#" * (8 * MIB + 1))
    assert "standard input: it is larger, and a document may have 8 MiB" in done.stdout


# No other place.

UNBOUNDED: Final = re.compile(r"\.read_(?:text|bytes)\(|\.read\(\)|\.readlines?\(\)")
KNOWN: Final = {
    "nri_resmgr/version.py": 1,  # of our own package
    "nri_resmgr/control/routes.py": 1,  # the schema, the same
    "nri_resmgr/control/page/routes.py": 1,  # files of the page, the same
    "nri_resmgr/process/own_metrics.py": 1,  # /proc/self/statm, a line
    "nri_resmgr/host/machine/dump.py": 1,  # a member of a bounded stream
    "nri_resmgr/daemon/dra.py": 1,  # of a `SpoolFolder`, which bounds files
    "nri_resmgr/webhook/certificate.py": 1,  # of a `WatchedFile`, the same
    "nri_resmgr/daemon/cluster/reading.py": 1,  # of a `SpoolFolder`, which bounds files
    "nri_resmgr/agent/api/credentials.py": 1,  # of a `Source`, which bounds files
    "nri_resmgr/cli/launcher.py": 1,  # in a program that it writes: the program itself
    "nri_resmgr/cli/new_plugin/command.py": 1,  # of our own package
}


SHIPPED: Final = ("nri_proto", "nri_resmgr", "plugins")


def test_nothing_else_reads_a_file_as_a_whole() -> None:
    found: dict[str, int] = {}
    paths = (one for name in SHIPPED for one in (ROOT / name).rglob("*.py"))
    for path in sorted(paths):
        lines = [
            line
            for line in path.read_text().splitlines()
            if UNBOUNDED.search(line) and not is_bounded(line)
        ]
        if lines:
            found[str(path.relative_to(ROOT))] = len(lines)

    assert found == KNOWN


def is_bounded(line: str) -> bool:
    """Return whether the call is of an object of ours that has a bound."""
    return bool(re.search(r"(?:file|cache|journal)\.read\(\)", line))
