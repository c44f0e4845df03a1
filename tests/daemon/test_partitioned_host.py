"""A host keeps partitions over a crash, and drops those that are not needed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.daemon.host_nodes import PLAIN, HostNode, host_node
from tests.daemon.test_isolated_host import POD, TOP, create, more
from tests.waiting import until

pytestmark = pytest.mark.process

DOCUMENT: Final = PLAIN + "  exclusivity: partition\n"
ABOVE: Final = (f"{TOP}/kubepods/cpuset.cpus.exclusive", f"{POD}/cpuset.cpus.exclusive")


def with_cpusets(files: dict[str, str]) -> None:
    more(files)
    files[f"{TOP}/cgroup.procs"] = "1"
    files[f"{TOP}/kubepods/cpuset.cpus.exclusive"] = "7"  # another program's


async def begin(node: HostNode, name: str) -> Path:
    """Create a container, its cgroup, and start it."""
    await create(node, name, {})
    folder = node.host / POD[1:] / name
    folder.mkdir()
    for file, text in {
        "cgroup.procs": "42",
        "cpu.weight": "79",
        "cpuset.cpus": "2,6",
        "cpuset.mems": "0",
        "cpuset.cpus.exclusive": "",
        "cpuset.cpus.partition": "member",
    }.items():
        (folder / file).write_text(f"{text}\n")
    await node.runtime.start_container(name)
    return folder


def text(node: HostNode, path: str) -> str:
    return (node.host / path[1:]).read_text().strip()


def above(node: HostNode) -> list[str]:
    return [text(node, path) for path in ABOVE]


async def test_the_next_daemon_takes_partitions_over(tmp_path: Path) -> None:
    async with host_node(tmp_path, DOCUMENT, with_cpusets) as node:
        async with node.running() as process:
            folder = await begin(node, "web")
            # The start was answered when it was made.
            assert (folder / "cpuset.cpus.partition").read_text() == "root\n"
            assert above(node) == ["2,6-7", "2,6"]
            process.kill()
        assert above(node) == ["2,6-7", "2,6"]

        async with node.running():
            await node.says("partition.in-force")
            shutil.rmtree(folder)
            await node.go("web")
            await until(lambda: above(node) == ["7", ""], within=8)


async def test_after_a_crash_partitions_of_removed_containers_are_removed(
    tmp_path: Path,
) -> None:
    async with host_node(tmp_path, DOCUMENT, with_cpusets) as node:
        async with node.running() as process:
            folder = await begin(node, "web")
            process.kill()
        shutil.rmtree(folder)
        await node.go("web")
        assert above(node) == ["2,6-7", "2,6"]

        async with node.running():
            await until(lambda: above(node) == ["7", ""], within=8)
