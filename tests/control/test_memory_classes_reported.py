"""Memory classes, in the daemon's answers and in what commands print."""

from __future__ import annotations

from pathlib import Path

from nri_resmgr.app.metrics.of_host import series_of_classes
from nri_resmgr.app.metrics.text import render
from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.cli.render_host import class_lines, class_tables
from nri_resmgr.control.classes import classes_of
from tests.app.memory_node import CLASS, MACHINE, POLICY, QOS, SPEC, v2_host
from tests.app.node import running_node
from tests.control.json_schema import mistakes

KEYS = ("kind", "name", "settings", "containers")
ROWS: tuple[tuple[str, str, str, list[str]], ...] = (
    ("memory-qos", "bronze", "50% of the limit swapped", ["default/a/a"]),
    ("memory-qos", "none", "0% of the limit swapped", []),
    (
        "memory-policy",
        "near",
        "MPOL_BIND cpu-nodes MPOL_F_STATIC_NODES",
        ["default/a/a", "default/b/b"],
    ),
    ("memory-policy", "spread", "MPOL_INTERLEAVE all", []),
    ("memory-policy", "far", "MPOL_BIND 1", []),
)


async def test_classes_are_reported_with_owners_and_meaning(tmp_path: Path) -> None:
    async with running_node(v2_host(tmp_path), MACHINE, SPEC) as node:
        await node.run("a", 1, {QOS: "bronze", CLASS: "near"})
        await node.run("b", 1, {CLASS: "near", f"{QOS}/other": "bronze"})
        await node.run("c", 1, {POLICY: "{mode: MPOL_LOCAL}"})
        found = classes_of(node.plugin)
        text = render(series_of_classes(node.plugin, node.plugin.class_hosts))

    assert mistakes(found, "classes") == []
    rows = [dict(zip(KEYS, row, strict=True)) for row in ROWS]
    assert found == {
        "rdt": None,
        "blockio": None,
        "memory": {"classes": rows},
        "topTier": [],
    }
    (table,) = class_tables(found)
    assert table.splitlines()[1].split() == [
        *("bronze", "memory-qos", "50%", "of", "the", "limit", "swapped", "1")
    ]
    assert list(class_lines(found)) == []
    assert {line for line in text.splitlines() if "#" not in line} == {
        'nri_resmgr_class_containers{kind="memory-qos",class="bronze"} 1',
        'nri_resmgr_class_containers{kind="memory-policy",class="near"} 2',
    }


async def test_a_class_removed_by_another_document_has_no_owners(
    tmp_path: Path,
) -> None:
    async with running_node(v2_host(tmp_path), MACHINE, SPEC) as node:
        await node.run("a", 1, {QOS: "bronze"})
        reconfigure(node.plugin, type(node.plugin.config)())
        found = classes_of(node.plugin)

    assert found == {"rdt": None, "blockio": None, "memory": None, "topTier": []}
