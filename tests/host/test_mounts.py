"""Which device holds a path, out of the kernel's table of mounts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nri_resmgr.host.mounts import MountTable
from nri_resmgr.host.tree import HostTree

ROOT = Path(__file__).parents[2]

TABLE = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:21 / /proc rw,nosuid - proc proc rw
30 22 259:3 /volumes /var/lib/kubelet rw - xfs /dev/nvme0n1p3 rw
31 30 0:50 / /var/lib/kubelet/pods/1/volumes/nfs rw - nfs4 server:/export rw
32 22 8:17 / /mnt/two\040words\134here rw - ext4 /dev/sdb1 rw
33 22 8:33 / /mnt/twice rw - ext4 /dev/sdc1 rw
34 33 8:49 / /mnt/twice rw - ext4 /dev/sdd1 rw
"""


def table_of(text: str, root: Path) -> MountTable:
    (root / "proc/1").mkdir(parents=True)
    (root / "proc/1/mountinfo").write_text(text.lstrip())
    return MountTable(HostTree(root))


@pytest.mark.parametrize(
    ("path", "device"),
    [
        pytest.param(
            "/var/log/pods", (8, 1), id="the root holds what nothing else does"
        ),
        pytest.param("/", (8, 1), id="the root holds itself"),
        pytest.param(
            "/var/lib/kubelet/pods/1/a", (259, 3), id="the longest point counts"
        ),
        pytest.param("/var/lib/kubelet2", (8, 1), id="names count as a whole"),
        pytest.param("/var/lib/kubelet/../x/", (8, 1), id="dots are taken out"),
        pytest.param("/var/lib/kubelet/pods/1/volumes/nfs/a", None, id="NFS has none"),
        pytest.param("/mnt/two words\\here/x", (8, 17), id="blanks are no separators"),
        pytest.param("/mnt/twice/x", (8, 49), id="the last mount is on top"),
    ],
)
def test_the_mount_above_a_path_reports_its_device(
    tmp_path: Path, path: str, device: tuple[int, int] | None
) -> None:
    assert table_of(TABLE, tmp_path).device_of(path) == device


def test_a_host_without_a_table_has_no_devices(tmp_path: Path) -> None:
    assert MountTable(HostTree(tmp_path)).device_of("/var") is None


def test_a_closed_table_can_be_read_again(tmp_path: Path) -> None:
    table = table_of(TABLE, tmp_path)
    first = table.device_of("/mnt")
    table.close()
    (tmp_path / "proc/1/mountinfo").write_text(TABLE.lstrip().replace("8:1 ", "8:2 "))

    assert (first, table.device_of("/mnt")) == ((8, 1), (8, 2))


# As init of a pid namespace: what it mounts is in the table of process 1. First it
# mounts a folder of a disk, because /tmp may be a tmpfs.
MOUNTS_LATER = """
import subprocess, sys
from nri_resmgr.host.mounts import MountTable
from nri_resmgr.host.tree import HostTree
subprocess.run(["mount", "--bind", sys.argv[2], sys.argv[1]], check=True)
table = MountTable(HostTree("/"))
print(table.device_of(sys.argv[1]))
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", sys.argv[1]], check=True)
print(table.device_of(sys.argv[1]))
subprocess.run(["umount", sys.argv[1]], check=True)
print(table.device_of(sys.argv[1]))
"""


@pytest.mark.process
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare(1)")
def test_the_kernel_reports_changes_of_its_mount_table(tmp_path: Path) -> None:
    unshare = ("unshare", "--mount", "--pid", "--fork", "--mount-proc")
    done = subprocess.run(
        [*unshare, sys.executable, "-c", MOUNTS_LATER, tmp_path, ROOT],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr:
        pytest.skip("namespaces are not allowed here")
    number = ROOT.stat().st_dev
    # A checkout on overlayfs or btrfs has no device; then all three are None.
    device = (os.major(number), os.minor(number)) if os.major(number) else None

    assert done.stdout.splitlines() == [str(device), "None", str(device)]
