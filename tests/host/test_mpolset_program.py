"""The program mpolset, copied to where the runtime finds it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.host.mpolset import MpolsetProgram, MpolsetUnusable

# A mount of its own ends with the process.
NOEXEC: Final = """
mount -t tmpfs -o noexec none "$1" || exit 77
exec "$2" -c '
import sys
from nri_resmgr.host.mpolset import MpolsetProgram
MpolsetProgram(sys.argv[1], sys.argv[2]).place()' "$3" "$1"
"""

HELP = (
    "; to help, build it (make mpolset), name it with --mpolset, and have --run-dir on "
    "a file system without noexec"
)


def program_in(folder: Path, content: bytes = b"\x7fELF one") -> MpolsetProgram:
    (folder / "source").write_bytes(content)
    return MpolsetProgram(str(folder / "source"), str(folder / "run"))


def test_the_program_is_copied_once_and_executable_by_all_users(tmp_path: Path) -> None:
    program = program_in(tmp_path)

    target = Path(program.place())
    first = target.stat()
    program.place()

    assert target == tmp_path / "run" / "mpolset"
    assert target.read_bytes() == b"\x7fELF one"
    assert first.st_mode & 0o7777 == 0o555
    assert target.stat().st_ino == first.st_ino
    assert list((tmp_path / "run").iterdir()) == [target]


def test_another_version_replaces_the_program_and_keeps_the_mounted_file(
    tmp_path: Path,
) -> None:
    program = program_in(tmp_path)
    target = Path(program.place())
    with target.open("rb") as mounted:
        program_in(tmp_path, b"\x7fELF another")
        program.place()

        assert target.read_bytes() == b"\x7fELF another"
        assert mounted.read() == b"\x7fELF one"


def test_a_rest_of_a_killed_process_does_not_matter(tmp_path: Path) -> None:
    program = program_in(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".mpolset.new").write_bytes(b"half")

    assert Path(program.place()).read_bytes() == b"\x7fELF one"


def test_a_link_in_its_place_is_replaced_and_not_followed(tmp_path: Path) -> None:
    program = program_in(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / "run" / "mpolset").symlink_to(tmp_path / "victim")

    target = Path(program.place())

    assert not target.is_symlink()
    assert (tmp_path / "victim").read_bytes() == b"mine"


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"\x7fELF")
    program = MpolsetProgram(str(tmp_path / "source"), str(tmp_path / "run"), True)

    assert program.place() == f"{tmp_path}/run/mpolset"
    assert not (tmp_path / "run").exists()


def test_where_it_cannot_be_used(tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    program_in(tmp_path, b"#!/bin/sh\n")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "program").write_bytes(b"\x7fELF")
    real = str(tmp_path / "program")

    found = []
    for one in (
        MpolsetProgram("", str(tmp_path)),
        MpolsetProgram(real, ""),
        MpolsetProgram(str(tmp_path / "none"), str(tmp_path)),
        MpolsetProgram(str(tmp_path), str(tmp_path)),
        MpolsetProgram(source, str(tmp_path / "run")),
        MpolsetProgram(real, str(tmp_path / "open")),
    ):
        with pytest.raises(MpolsetUnusable) as error:
            one.place()
        found.append(str(error.value).removesuffix(HELP).partition("used: ")[2])

    assert found == [
        "--mpolset: is empty",
        "--run-dir: is empty",
        f"{tmp_path}/none: No such file or directory",
        f"{tmp_path}: is not a file",
        f"{source}: is not a program",
        f"{tmp_path}/open/mpolset: others may write to {tmp_path}/open",
    ]


@pytest.mark.process
@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_place_where_no_program_runs_is_reported(tmp_path: Path) -> None:
    program_in(tmp_path)
    run = tmp_path / "run"
    run.mkdir()
    words = ("unshare", "--mount", "sh", "-c", NOEXEC, "sh", str(run), sys.executable)
    found = subprocess.run(
        (*words, str(tmp_path / "source")), capture_output=True, text=True, check=False
    )
    if found.returncode == 77:
        pytest.skip(found.stderr)

    assert f"{run}: its file system is mounted noexec{HELP}" in found.stderr
