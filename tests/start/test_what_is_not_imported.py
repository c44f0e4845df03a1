"""What a daemon that serves everything does without."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import sysconfig
from pathlib import Path

from nri_resmgr.version import version_in

# As the daemon begins to serve metrics and control: the modules that it then has.
_SERVES = """
import sys
from nri_resmgr.lazy import UNTOUCHED, import_when_touched
import_when_touched(UNTOUCHED)
import asyncio, socket
from nri_resmgr.control.http import Limits, Site, serve

async def main():
    site = Site({}, Limits(head=999, body=0, connections=1, seconds=1))
    sites = [serve(site, socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
    await asyncio.wait(map(asyncio.create_task, sites), timeout=0.1)
    print(*sys.modules)
    assert asyncio.base_events.ssl is not None

asyncio.run(main())
"""


def test_serving_takes_no_tls_and_leaves_it_to_others() -> None:
    command = (sys.executable, "-c", _SERVES)
    found = subprocess.run(command, check=True, capture_output=True, text=True)

    assert "_ssl" not in found.stdout.split()


def test_our_version_is_read_as_the_standard_library_reads_it() -> None:
    folder = Path(sysconfig.get_path("purelib"))

    assert version_in(folder) == importlib.metadata.version("nri-resmgr")


def test_a_folder_without_us_has_no_version(tmp_path: Path) -> None:
    other = tmp_path / "nri_resmgr_more-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Name: nri_resmgr_more\nVersion: 1.0\n")

    assert version_in(tmp_path) == ""
