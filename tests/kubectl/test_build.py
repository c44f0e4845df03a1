"""The plugin is one file, which needs nothing but Python."""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from tests.kubectl.built import PROGRAM, ROOT, built, run

pytestmark = pytest.mark.process

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
URL = "https://example.com/plugin.tar.gz"


def test_the_program_runs_alone_and_under_its_name(tmp_path: Path) -> None:
    program = built(tmp_path)

    alone = run(program, "--help")
    named = subprocess.run(
        [program, "status"], capture_output=True, text=True, check=False
    )

    assert (alone.returncode, alone.stderr) == (0, "")
    assert alone.stdout.startswith("usage: kubectl nri-resmgr ")
    assert (named.returncode, named.stdout) == (2, "")
    assert named.stderr.count("\n") == 1


def test_two_builds_are_the_same(tmp_path: Path) -> None:
    first, second = built(tmp_path / "first", URL), built(tmp_path / "second", URL)

    contents = [
        {path.name: path.read_bytes() for path in program.parent.iterdir()}
        for program in (first, second)
    ]
    assert len(contents[0]) == 3
    assert contents[0] == contents[1]


def test_krew_finds_in_the_archive_what_the_manifest_says(tmp_path: Path) -> None:
    program = built(tmp_path, URL)
    manifest = yaml.safe_load((tmp_path / "nri-resmgr.yaml").read_text())
    path = tmp_path / f"{PROGRAM}-{PROJECT['version']}.tar.gz"
    [platform] = manifest["spec"]["platforms"]

    with tarfile.open(path) as archive:
        members = {one.name: one for one in archive}
        file = archive.extractfile(PROGRAM)
        assert file is not None
        packed = file.read()
    assert manifest["spec"]["version"] == f"v{PROJECT['version']}"
    assert platform["uri"] == URL
    assert platform["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert {one["from"] for one in platform["files"]} == set(members)
    assert members[platform["bin"]].mode & 0o111
    assert packed == program.read_bytes()


def test_the_package_has_the_program_as_an_entry_point() -> None:
    module, _, function = PROJECT["scripts"][PROGRAM].partition(":")

    assert callable(getattr(import_module(module), function))
