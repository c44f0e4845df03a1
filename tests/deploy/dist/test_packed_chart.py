"""The package of the chart is the chart."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from tests.deploy.dist.released import ROOT, commit
from tests.deploy.helm import CHART, Release

# The first one may have to fetch a compiler and build what renders.
pytestmark = [
    pytest.mark.process,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("release"),
]

MIB = 1 << 20


@pytest.fixture
def unpacked(release: Path, tmp_path: Path) -> Path:
    [package] = release.glob("nri-resmgr-*.tgz")
    with tarfile.open(package) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "nri-resmgr"


def test_it_has_the_files_of_the_chart_but_those_that_helm_ignores(
    unpacked: Path,
) -> None:
    expected = {
        (Path(folder) / name).relative_to(CHART).as_posix(): (
            Path(folder) / name
        ).read_bytes()
        for folder, _, names in os.walk(CHART, followlinks=True)
        for name in names
    }
    assert expected.pop("files/crds/kustomization.yaml")

    assert {
        path.relative_to(unpacked).as_posix(): path.read_bytes()
        for path in unpacked.rglob("*")
        if path.is_file()
    } == expected


def test_it_is_laid_out_as_helm_packs_charts(release: Path) -> None:
    [package] = release.glob("nri-resmgr-*.tgz")
    with tarfile.open(package) as archive:
        members = list(archive)

    assert [one.name for one in members[:3]] == [
        "nri-resmgr/Chart.yaml",
        "nri-resmgr/values.yaml",
        "nri-resmgr/values.schema.json",
    ]
    assert {(one.isreg(), one.mode, one.uid, one.gid) for one in members} == {
        (True, 0o644, 0, 0)
    }
    # Helm reads no larger file of a chart.
    assert max(one.size for one in members) < 5 * MIB


def test_it_renders_as_the_folder_does(unpacked: Path) -> None:
    everything = {
        "admissionPolicy": {"enabled": True},
        "crds": {"nodeResourceTopology": True},
    }

    assert Release(chart=unpacked).render(**everything) == Release().render(
        **everything
    )


def test_its_versions_are_those_of_the_project(unpacked: Path, release: Path) -> None:
    [wheel] = release.glob("*.whl")
    version = wheel.name.split("-")[1]
    chart = yaml.safe_load((unpacked / "Chart.yaml").read_text())

    assert (chart["version"], chart["appVersion"]) == (version, version)


def test_another_version_of_the_chart_is_refused(tmp_path: Path) -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    checkout = commit(
        tmp_path / "checkout",
        pyproject=project.replace('\nversion = "', '\nversion = "9.', 1),
    )
    done = subprocess.run(
        [sys.executable, checkout / "deploy" / "dist" / "chart.py", tmp_path / "dist"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        "deploy/helm/Chart.yaml: version and appVersion have to be 9."
    )
    assert not (tmp_path / "dist").exists()
