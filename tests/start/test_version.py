"""How the version is found without the standard library's slow way."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import nri_resmgr
from nri_resmgr.version import version_in
from tests.cli.command import ROOT
from tests.cli.command import nri_resmgr as command


def test_our_version_is_read_as_the_standard_library_reads_it() -> None:
    folder = Path(sysconfig.get_path("purelib"))

    assert version_in(folder) == importlib.metadata.version("nri-resmgr")


def test_the_version_is_found_without_importlib_metadata() -> None:
    program = (
        "import sys; from nri_resmgr.version import our_version; "
        "print(our_version(), 'importlib.metadata' in sys.modules)"
    )
    shown = subprocess.check_output([sys.executable, "-c", program], text=True)

    assert shown.split() == [importlib.metadata.version("nri-resmgr"), "False"]


def test_a_folder_without_the_package_has_no_version(tmp_path: Path) -> None:
    other = tmp_path / "nri_resmgr_more-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Name: nri_resmgr_more\nVersion: 1.0\n")

    assert version_in(tmp_path) == ""


def test_the_package_has_its_version() -> None:
    assert nri_resmgr.__version__ == importlib.metadata.version("nri-resmgr")


def test_the_package_has_no_other_late_attribute() -> None:
    with pytest.raises(AttributeError, match=r"'nri_resmgr' has no attribute 'other'"):
        nri_resmgr.other  # noqa: B018 - it raises


def test_the_version_is_not_read_before_it_is_asked_for() -> None:
    program = (
        "import sys, nri_resmgr; print('nri_resmgr.version' in sys.modules); "
        "nri_resmgr.__version__; print('nri_resmgr.version' in sys.modules)"
    )
    shown = subprocess.check_output([sys.executable, "-c", program], text=True)

    assert shown.split() == ["False", "True"]


@pytest.mark.process
def test_the_command_prints_its_version() -> None:
    done = command("--version")

    version = importlib.metadata.version("nri-resmgr")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"nri-resmgr {version}\n"


@pytest.mark.process
def test_the_version_is_read_in_any_locale() -> None:
    """The metadata has the README, which is not in ASCII."""
    done = command(
        "--version",
        env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    )

    assert done.stdout == f"nri-resmgr {importlib.metadata.version('nri-resmgr')}\n"


@pytest.mark.process
def test_a_checkout_that_is_not_installed_says_so(tmp_path: Path) -> None:
    """Its dependencies are found, but no metadata of ours."""
    for one in Path(sysconfig.get_path("purelib")).iterdir():
        if "nri_resmgr" not in one.name:
            (tmp_path / one.name).symlink_to(one)
    shown = subprocess.check_output(
        [sys.executable, "-S", "-m", "nri_resmgr", "--version"],
        env={"PYTHONPATH": f"{ROOT}:{tmp_path}"},
        text=True,
    )

    assert shown == "nri-resmgr (not installed)\n"
