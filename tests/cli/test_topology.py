"""``nri-resmgr topology``: what people, programs and bug reports get."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import yaml

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.machine.dump import load_dump, write_dump
from nri_resmgr.host.machine.sysfs_writer import sysfs_files
from nri_resmgr.host.tree import HostTree
from nri_resmgr.topology.document import from_document
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.topology.text import format_tree
from nri_resmgr.values import CpuSet
from tests.pictures.seen import seen

pytestmark = pytest.mark.process

SPEC = "2s2n4c2t"
TREE = sysfs_files(parse_spec(SPEC))


def topology(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "nri_resmgr", "topology", *arguments)
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_a_tree_for_people() -> None:
    shown = topology("--machine", SPEC)

    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout == f"{format_tree(parse_spec(SPEC))}\n"


@pytest.mark.parametrize(
    ("output", "parse"), [("json", json.loads), ("yaml", yaml.safe_load)]
)
def test_documents_for_programs(output: str, parse: object) -> None:
    assert callable(parse)
    shown = topology("--machine", SPEC, "-o", output)

    found = parse(shown.stdout)
    assert from_document(found.pop("machine")) == parse_spec(SPEC)
    assert found == {"apiVersion": "cli.nri/v1", "kind": "Topology"}


def test_a_dump_loads_anywhere(tmp_path: Path) -> None:
    root, dump = tmp_path / "root", tmp_path / "machine.tgz"
    written = topology("--machine", SPEC, "sysfs", root)
    dumped = topology("--host-root", root, "dump", dump)
    shown = topology("--load", dump, "-o", "json")

    assert (written.returncode, dumped.returncode, shown.returncode) == (0, 0, 0)
    found = json.loads(shown.stdout)["machine"]
    assert from_document(found) == read_machine(HostTree(root))
    assert dumped.stdout == f"{dump}: 32 CPUs, 4 nodes\n"


def test_a_dump_that_cannot_be_made_writes_nothing(tmp_path: Path) -> None:
    done = topology("--host-root", tmp_path, "dump", "-")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("nri-resmgr: ")


def test_a_made_up_machine_and_a_dump_can_be_dumped(tmp_path: Path) -> None:
    made_up, again = tmp_path / "made-up.tgz", tmp_path / "again.tgz"
    first = topology("--machine", SPEC, "dump", made_up)
    second = topology("--load", made_up, "dump", again)

    assert (first.stderr, second.stderr) == ("", "")
    assert load_dump(made_up) == load_dump(again) == read_machine(TREE)


def test_a_dump_goes_to_standard_output(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "nri_resmgr", "topology", "--machine", SPEC)
    path = tmp_path / "machine.tgz"
    done = subprocess.run((*command, "dump", "-"), check=False, capture_output=True)
    path.write_bytes(done.stdout)

    assert (done.returncode, done.stderr) == (0, b"")
    assert load_dump(path) == read_machine(TREE)


def test_a_terminal_gets_no_dump() -> None:
    command = (sys.executable, "-m", "nri_resmgr", "topology", "--machine", SPEC)
    ours, theirs = pty.openpty()
    done = subprocess.run(
        (*command, "dump", "-"), check=False, stdout=theirs, stderr=subprocess.PIPE
    )
    os.close(theirs)
    os.close(ours)

    assert done.returncode == 1
    assert done.stderr == (
        b"nri-resmgr: cannot write -: a terminal cannot take it; send it to a file\n"
    )


def test_two_sources_of_a_machine_are_rejected() -> None:
    shown = topology("--machine", SPEC, "--load", "/nowhere")

    assert (shown.returncode, shown.stdout) == (2, "")
    assert "not allowed with argument --machine" in shown.stderr


def test_this_machine() -> None:
    shown = topology("-o", "json")

    assert (
        from_document(json.loads(shown.stdout)["machine"]).online
        == read_machine(HostTree("/")).online
    )


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        pytest.param(("--machine", "2x"), 2, "2x", id="no such machine"),
        pytest.param(("--load", "/etc/passwd"), 2, "not a dump", id="no dump"),
        pytest.param(("--load", "/nowhere"), 2, "/nowhere", id="no file"),
        pytest.param(("dump", "/nowhere/x"), 1, "cannot write", id="no folder"),
        pytest.param(
            ("--host-root", "/nowhere"), 1, "/nowhere/sys/devices", id="no host"
        ),
        pytest.param(
            ("--machine", SPEC, "sysfs", "/etc"),
            1,
            "cannot write /etc: it is not empty; name a new folder",
            id="a folder of something else",
        ),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: tuple[str, ...], status: int, words: str
) -> None:
    shown = topology(*arguments)

    assert (shown.returncode, shown.stdout) == (status, "")
    assert words in shown.stderr
    assert shown.stderr.count("\n") == 1


def test_a_closed_pipe_is_not_an_error() -> None:
    spec = ("--machine", "2s2n32c2t", "-o", "yaml")
    command = (sys.executable, "-m", "nri_resmgr", "topology", *spec)
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout
        assert process.stderr
        first = process.stdout.readline()
        process.stdout.close()

        assert (first, process.stderr.read()) == ("apiVersion: cli.nri/v1\n", "")


def test_a_picture_has_the_machine_and_its_isolated_cpus(tmp_path: Path) -> None:
    machine = msgspec.structs.replace(
        parse_spec("2s2n4c2t offline=3"), isolated=CpuSet.parse("4-5")
    )
    dump, picture = tmp_path / "machine.tgz", tmp_path / "machine.svg"
    write_dump(sysfs_files(machine), dump)

    shown = topology("--load", dump, "--picture", picture)

    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("machine: 31 CPUs online")
    found = seen(picture.read_text())
    assert found.title == "31 CPUs online, offline 3"
    assert found.cpus_with("free") == machine.online
    assert found.cpus_with("isolated") == CpuSet.parse("4-5")
    assert [one for one in found.words("label") if one.startswith("node 0")] == [
        "node 0, 16Gi dram"
    ]
