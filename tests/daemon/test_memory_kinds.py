"""``--memory-kinds``: the user's word on what memory is made of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nri_resmgr.daemon.memory_kinds import BadMemoryKind, read_memory_kinds
from nri_resmgr.topology import MemoryKind
from tests.cli.command import nri_resmgr


def test_kinds_are_read_by_node() -> None:
    assert read_memory_kinds("2-3=hbm  7=cxl") == {
        2: MemoryKind.HBM,
        3: MemoryKind.HBM,
        7: MemoryKind.CXL,
    }
    assert read_memory_kinds("") == {}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("2", "'2': expected NODES=KIND", id="no kind"),
        pytest.param(
            "2=ram", "a kind of dram, hbm, pmem, cxl", id="a kind that there is not"
        ),
        pytest.param("x=hbm", "not a CPU or node list: 'x'", id="no node"),
        pytest.param("=hbm", "expected nodes", id="no nodes at all"),
        pytest.param("2=hbm 1-2=cxl", "'1-2=cxl': expected nodes", id="a node twice"),
    ],
)
def test_a_mistake_is_reported(text: str, sentence: str) -> None:
    with pytest.raises(BadMemoryKind) as raised:
        read_memory_kinds(text)

    assert sentence in str(raised.value)


@pytest.mark.process
def test_the_machine_is_shown_with_the_given_kinds(tmp_path: Path) -> None:
    root = str(tmp_path / "host")
    nri_resmgr("topology", "--machine", "1s1n2c1t cxl=1x4Gi", "sysfs", root)

    shown = nri_resmgr(
        "topology", "--host-root", root, "--memory-kinds", "1=hbm", "-o", "json"
    )

    nodes = json.loads(shown.stdout)["machine"]["nodes"]
    assert [node.get("kind", "dram") for node in nodes] == ["dram", "hbm"]


@pytest.mark.process
def test_the_daemon_refuses_a_mistake() -> None:
    ended = nri_resmgr("run", "--memory-kinds", "1=gold", "--nri-socket", "/nowhere")

    assert ended.returncode == 2
    assert "--memory-kinds: '1=gold'" in ended.stderr.splitlines()[-1]
