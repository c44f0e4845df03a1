"""How the version is found without the standard library's slow way."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import sysconfig
from pathlib import Path

from nri_resmgr.version import version_in


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
