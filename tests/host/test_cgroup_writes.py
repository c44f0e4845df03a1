"""Lines into the files of a cgroup."""

from __future__ import annotations

import errno
from pathlib import Path

from nri_resmgr.host.cgroups.writes import FailedWrite, write_cgroup_files
from nri_resmgr.host.knobs.files import WritableHostTree


class RefusingFiles(WritableHostTree):
    """Files that answer to some lines as a kernel would."""

    def write(self, path: str, text: str) -> None:
        answers = {"8:32 rbps=max": errno.ENODEV, "8:48 rbps=0": errno.ERANGE}
        if text in answers:
            raise OSError(answers[text], "refused")
        # Lines are kept apart here; a kernel keeps values by device.
        with Path(self.root + path).open("a") as file:
            file.write(f"{text}\n")


def test_each_line_is_written_and_each_refusal_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "sys/fs/cgroup/pod"
    folder.mkdir(parents=True)
    (folder / "io.max").touch()
    lines = ("8:0 rbps=1", "8:32 rbps=max", "8:48 rbps=0", "8:64 rbps=2")
    failed = write_cgroup_files(
        RefusingFiles(tmp_path), "/sys/fs/cgroup/pod", {"io.max": lines}
    )

    assert (folder / "io.max").read_text() == "8:0 rbps=1\n8:64 rbps=2\n"
    assert failed == (
        FailedWrite(
            "/sys/fs/cgroup/pod/io.max", "8:48 rbps=0", "Numerical result out of range"
        ),
    )
    assert str(failed[0]) == (
        "/sys/fs/cgroup/pod/io.max: '8:48 rbps=0': Numerical result out of range"
    )


def test_no_file_is_created_and_a_removed_cgroup_is_reported(tmp_path: Path) -> None:
    (tmp_path / "pod").mkdir()
    tree = WritableHostTree(tmp_path)

    files = {"io.weight": ("100",)}
    missing = "No such file or directory"
    assert write_cgroup_files(tree, "/pod", files) == (
        FailedWrite("/pod/io.weight", "100", missing),
    )
    assert write_cgroup_files(tree, "/none", files) == (
        FailedWrite("/none/io.weight", "100", missing),
    )
    assert list((tmp_path / "pod").iterdir()) == []
