"""CPUs and memory that come and go are noticed, once each."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.host.hotplug import HotplugWatch
from nri_resmgr.host.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.host.tree import HostTree
from nri_resmgr.topology.synthetic import parse_spec

SYSTEM = "sys/devices/system"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        pytest.param("cpu/online", "0-2", id="a CPU goes offline"),
        pytest.param("cpu/present", "0-4", id="a CPU is plugged in"),
        pytest.param("node/online", "0-2", id="a node comes"),
        pytest.param("node/has_memory", "0", id="a node's memory goes"),
        pytest.param("node/has_normal_memory", "0", id="memory becomes movable"),
        pytest.param("memory/memory9/state", "online", id="a block comes"),
    ],
)
def test_a_change_is_told_once(file: str, text: str, tmp_path: Path) -> None:
    write_tree(sysfs_files(parse_spec("2s2c")), tmp_path)
    watch = HotplugWatch(HostTree(tmp_path))
    before = watch.has_changed()
    (tmp_path / SYSTEM / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / SYSTEM / file).write_text(f"{text}\n")

    assert (before, watch.has_changed(), watch.has_changed()) == (False, True, False)


def test_memory_that_a_balloon_takes_is_no_change(tmp_path: Path) -> None:
    write_tree(sysfs_files(parse_spec("1c memory=2Gi")), tmp_path)
    watch = HotplugWatch(HostTree(tmp_path))
    write_tree(sysfs_files(parse_spec("1c memory=1Gi")), tmp_path)

    assert not watch.has_changed()
