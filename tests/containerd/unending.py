"""A test that leaves as much as it can when its run is killed; it never ends.

It is named only by `test_killed_run`: pytest does not collect it by itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from tests.host.own_cgroups import own_cgroups
from tests.real_host.binaries import offered_versions
from tests.real_host.containerd import running_containerd
from tests.real_host.documents import STATIC
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import PodSpec
from tests.real_host.resources import Resources
from tests.real_host.runs import VARIABLE

# As a service of a systemd: nothing in its environment or arguments is ours.
_SERVICE = 'mount --bind "$0" /mnt; exec env -i sleep 600'


@pytest.mark.containerd
def test_it(tmp_path: Path) -> None:
    ready = Path(os.environ["NRI_RESMGR_TEST_READY"])
    tempfile.mkdtemp(prefix="bus-")
    (mount := tmp_path / "mount").mkdir()
    subprocess.run(("mount", "-t", "tmpfs", "tmpfs", mount), check=True)
    (sockets := tmp_path / "sockets").mkdir()
    service = subprocess.Popen(("unshare", "--mount", "sh", "-ec", _SERVICE, sockets))
    version, folder = offered_versions()[0], tmp_path / "cd"
    folder.mkdir()
    with running_containerd(version, folder) as daemon, own_cgroups() as cgroups:
        socket = daemon.layout.nri_socket
        with PluginProcess.resource_policy(socket, tmp_path / "log", document=STATIC):
            pod = daemon.run_pod(PodSpec("left"))
            pod.start("behind", Resources.guaranteed(1))
            cgroups.make("frozen")
            cgroups.start("frozen")
            cgroups.freeze("frozen", frozen=True)
            about = {
                "name": os.environ[VARIABLE],
                "folder": os.environ["TMPDIR"],
                "service": service.pid,
            }
            ready.with_suffix(".new").write_text(json.dumps(about))
            ready.with_suffix(".new").rename(ready)
            time.sleep(600)
