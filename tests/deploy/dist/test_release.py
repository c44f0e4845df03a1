"""A release is the same each time, and of the commit only."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.deploy.built_image import archive_in
from tests.deploy.dist.released import ROOT, TIME, build, commit, head_of
from tests.real_host.absent import give_up

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("release")]

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def checksums_of(files: Mapping[str, bytes]) -> bytes:
    """Return what ``sha256sum`` writes of files."""
    return "".join(
        f"{hashlib.sha256(data).hexdigest()}  {name}\n"
        for name, data in sorted(files.items())
    ).encode()


def test_it_has_all_but_the_image(release: Path) -> None:
    assert {one.name for one in release.iterdir()} == {
        "SHA256SUMS",
        "kubectl-nri_resmgr",
        f"kubectl-nri_resmgr-{VERSION}.tar.gz",
        f"nri-resmgr-{VERSION}-wheel.cdx.json",
        f"nri-resmgr-{VERSION}.tgz",
        f"nri_resmgr-{VERSION}-py3-none-any.whl",
        f"nri_resmgr-{VERSION}.tar.gz",
    }


def test_the_page_on_releases_names_each_file(release: Path) -> None:
    page = (ROOT / "docs" / "releasing.md").read_text()
    names = {one.name.replace(VERSION, "VERSION") for one in release.iterdir()}

    assert {name for name in names if f"`{name}`" not in page} == set()


def test_the_checksums_are_those_of_all_files(release: Path) -> None:
    files = contents(release)

    assert files.pop("SHA256SUMS") == checksums_of(files)


def test_a_second_build_elsewhere_is_equal(release: Path, tmp_path: Path) -> None:
    """Of a working copy that has changed since, by a user with other settings."""
    again = commit(tmp_path / "elsewhere")
    (again / "README.md").write_text("changed")
    (again / "nri_resmgr" / "scratch.py").write_text("new = 1\n")
    umask = os.umask(0o077)
    try:
        done = build(again, tmp_path / "dist", TZ="Asia/Tokyo", LC_ALL="C.UTF-8")
    finally:
        os.umask(umask)

    assert done.returncode == 0, done.stderr
    assert "dist: uncommitted changes are left out" in done.stderr
    assert contents(tmp_path / "dist") == contents(release)


def test_files_have_the_time_of_the_commit(release: Path) -> None:
    for name in (f"nri_resmgr-{VERSION}.tar.gz", f"nri-resmgr-{VERSION}.tgz"):
        with tarfile.open(release / name) as archive:
            assert {one.mtime for one in archive} == {TIME}, name


def test_a_release_replaces_the_last_one(checkout: Path, tmp_path: Path) -> None:
    folder = tmp_path / "dist"
    folder.mkdir()
    (folder / "SHA256SUMS").write_text("")
    (folder / "nri_resmgr-0.0.1.tar.gz").write_text("")
    url = "https://example.com/plugin.tar.gz"

    done = build(checkout, folder, url)

    assert done.returncode == 0, done.stderr
    assert not (folder / "nri_resmgr-0.0.1.tar.gz").exists()
    assert f"uri: {url}\n" in (folder / "nri-resmgr.yaml").read_text()


def test_files_of_others_stay(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")

    done = build(checkout, tmp_path)

    assert (done.returncode, done.stderr) == (
        1,
        f"dist: {tmp_path} has files of others: move it away\n",
    )
    assert contents(tmp_path) == {"letter.txt": b"mine"}


def test_without_apt_all_but_the_image_is_built(
    release: Path, checkout: Path, tmp_path: Path
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in os.environ["PATH"].split(":")[::-1]:
        for one in Path(folder).iterdir() if Path(folder).is_dir() else ():
            (programs / one.name).unlink(missing_ok=True)
            (programs / one.name).symlink_to(one)
    (programs / "apt-get").unlink(missing_ok=True)

    done = build(checkout, tmp_path / "dist", IMAGE="", PATH=str(programs))

    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if "image" in line] == [
        (
            "dist: the image is left out: it needs root and apt: "
            "sudo make dist on Debian or Ubuntu"
        )
    ]
    assert contents(tmp_path / "dist") == contents(release)


def test_an_image_that_cannot_be_built_is_an_error_and_all_else_is_built(
    release: Path, checkout: Path, tmp_path: Path
) -> None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        give_up("only root on Debian or Ubuntu can build an image")

    done = build(checkout, tmp_path / "dist", IMAGE="", ARCH="sparc64")

    assert done.returncode == 1
    assert (
        "dist: an image is missing; make image ARCH=sparc64 failed: "
        "image: ARCH has to be"
    ) in done.stderr
    assert contents(tmp_path / "dist") == contents(release)


@pytest.mark.containerd
def test_with_an_image_it_has_its_archive_and_its_bill_of_materials(
    release: Path, checkout: Path, tmp_path: Path
) -> None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        give_up("only root on Debian or Ubuntu can build an image")

    done = build(checkout, tmp_path / "dist", IMAGE="")

    assert done.returncode == 0, done.stderr
    assert "image" not in done.stderr
    files, others = contents(tmp_path / "dist"), contents(release)
    sums = files.pop("SHA256SUMS")
    assert sums == checksums_of(files)
    assert done.stdout.encode() == sums
    del others["SHA256SUMS"]
    archive, bill = (
        f"nri-resmgr-{VERSION}{end}" for end in (".oci.tar", "-image.cdx.json")
    )
    assert set(files) == {*others, archive, bill}
    assert {name: files[name] for name in others} == others
    image = archive_in(tmp_path / "dist")
    [manifest] = image.index["manifests"]
    component = json.loads(files[bill])["metadata"]["component"]
    assert component["purl"] == f"pkg:oci/nri-resmgr@{manifest['digest']}"
    # An image says of which commit it is.
    labels = image.config["config"]["Labels"]
    assert labels["org.opencontainers.image.revision"] == head_of(checkout)


def test_a_folder_without_git_is_refused(checkout: Path, tmp_path: Path) -> None:
    done = build(
        checkout, tmp_path / "dist", GIT_DIR=str(tmp_path / "none"), IMAGE="no"
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "dist: not a checkout of git, where a release is built: clone the repository\n"
    )
