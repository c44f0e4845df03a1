"""A resize that we missed is made up for, as if it came now."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.testing import running_plugin
from tests.app.node import Node, asking_for, running_node

# 8 CPUs in two nodes of memory, of which CPU 0 is reserved.
MACHINE = "1s2n4c1t"


async def resized_unseen(node: Node, name: str, cpus: float) -> None:
    """Have the kubelet resize a container while the plugin is away."""
    node.stub.stop()
    await node.runtime.gone("90-resource-policy")
    await node.runtime.update_container(name, asking_for(cpus))
    async with running_plugin(node.runtime, node.plugin, "90-resource-policy"):
        pass


@pytest.mark.parametrize(
    ("now", "db", "web"),
    [
        pytest.param(3, ("4-6", "1"), ("1-2", "0"), id="more, beside what it had"),
        pytest.param(1, ("4", "1"), ("1-2", "0"), id="less, of what it had"),
        pytest.param(2, ("4-5", "1"), ("1-2", "0"), id="as it was"),
        pytest.param(7, ("4-5", "1"), ("1-2", "0"), id="more than there is"),
    ],
)
async def test_a_resize_that_was_missed(
    tmp_path: Path, now: int, db: tuple[str, str], web: tuple[str, str]
) -> None:
    async with running_node(tmp_path, MACHINE) as node:
        await node.run("db", 2)
        await node.run("web", 2)
        await resized_unseen(node, "db", now)

        assert {one: node.pinned(one) for one in ("db", "web")} == {
            "db": db,
            "web": web,
        }
