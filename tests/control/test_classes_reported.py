"""RDT and block I/O classes, in the daemon's answers and in what commands print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nri_resmgr.app.metrics.of_host import series_of_classes, series_of_rdt_counters
from nri_resmgr.app.metrics.text import render
from nri_resmgr.cli.render_host import class_lines, class_tables
from nri_resmgr.control.classes import class_sentences, classes_of
from nri_resmgr.testing.resctrl import Hardware, Resctrl
from tests.app.class_rig import HARDWARE, running_rig
from tests.control.json_schema import mistakes
from tests.waiting import until

SPEC = """{control: {
  rdt: {enable: true, usePodQoSAsDefaultClass: true, partitions:
    {p: {l3Allocation: 50%, classes: {gold: {}}}}},
  blockio: {enable: true, classes: {slow: [
    {Weight: 50}, {Devices: [/dev/none], ThrottleReadBps: 1k}]}}}}"""
ASKS = {
    "rdtclass.resource-policy.nri.io": "gold",
    "blockioclass.resource-policy.nri.io": "slow",
}


WHOLE = ["L3:0=fffff;1=fffff", "MB:0=100;1=100"]
GOLD = {
    "name": "gold",
    "managed": True,
    "wanted": ["L3:0=3ff;1=3ff", "MB:0=100;1=100"],
    "found": ["L3:0=3ff;1=3ff", "MB:0=100;1=100"],
    "threads": 2,
    "containers": ["default/c0/c0"],
}
FOREIGN = {"managed": False, "wanted": [], "threads": 0, "containers": []}
REPORTED: Any = {
    "rdt": {
        "problem": "",
        "monitorsPods": False,
        "classes": [
            GOLD,
            {"name": "system/default", "found": WHOLE} | FOREIGN,
            {"name": "other", "found": WHOLE} | FOREIGN,
        ],
        "dropped": 1,
        "failures": 0,
        "failing": [],
    },
    "blockio": {
        "byName": False,
        "classes": [
            {
                "name": "slow",
                "files": {"io.weight": ["405"]},
                "notices": ["/dev/none: matches no file"],
                "containers": ["default/c0/c0"],
            }
        ],
        "dropped": 0,
        "failures": 0,
        "failing": [],
    },
    "memory": None,
    "topTier": [],
}


async def test_classes_are_reported_with_owners_and_values(tmp_path: Path) -> None:
    resctrl = Resctrl(HARDWARE)
    resctrl.mkdir("other")
    async with running_rig(tmp_path, SPEC, resctrl) as rig:
        await rig.settled()
        await rig.create("c0", ASKS)
        await rig.create("c1")
        rig.appear("c0", 100, 101)
        await rig.node.runtime.start_container("c0")
        host = rig.node.plugin.class_hosts.rdt
        await until(lambda: "gold" in host.groups and host.groups["gold"].threads == 2)
        plugin = rig.node.plugin
        found = classes_of(plugin)
        reasons = {
            key: list(class_sentences(one.spec, plugin))
            for key, one in plugin.state.ledger.entries.items()
        }

    assert reasons == {
        "c0": [
            "RDT class gold, by annotation rdtclass.resource-policy.nri.io",
            "block I/O class slow, by annotation blockioclass.resource-policy.nri.io",
        ],
        "c1": [
            "RDT class Guaranteed, by its QoS class; the group does not exist",
        ],
    }
    assert mistakes(found, "classes") == []
    assert found == REPORTED
    assert list(class_lines(found)) == [
        ("RDT", "3 classes, 1 container created without a class"),
        ("block I/O", "1 class"),
    ]
    table, other = class_tables(found)
    assert [line.split() for line in table.splitlines()][1] == [
        *("gold", "L3:0=3ff;1=3ff", "MB:0=100;1=100"),
        *("L3:0=3ff;1=3ff", "MB:0=100;1=100", "2", "1"),
    ]
    assert "io.weight 405" in other


async def test_failures_of_classes_are_reported(tmp_path: Path) -> None:
    spec = SPEC.replace("50%", "'0x3ff'")
    resctrl = Resctrl(Hardware())
    resctrl.broken["info/L3/cbm_mask"] = 5
    async with running_rig(tmp_path, spec, resctrl) as rig:
        await rig.settled()
        # The groups are read after the attempt to make them.
        await until(lambda: rig.node.plugin.class_hosts.rdt.groups)
        found = classes_of(rig.node.plugin)

    assert mistakes(found, "classes") == []
    lines = list(class_lines(found))
    assert lines[0] == ("RDT", "1 class")
    assert lines[1][1].startswith("not as configured: ")
    assert "info/L3/cbm_mask" in lines[1][1]


async def test_disabled_classes_are_not_reported(tmp_path: Path) -> None:
    async with running_rig(tmp_path, "{}") as rig:
        found = classes_of(rig.node.plugin)

    assert found == {"rdt": None, "blockio": None, "memory": None, "topTier": []}
    assert (*class_lines(found), *class_tables(found)) == ()


async def test_counters_are_metrics_under_both_names(tmp_path: Path) -> None:
    async with running_rig(tmp_path, SPEC) as rig:
        await rig.settled()
        await rig.create("c0", ASKS)
        rig.resctrl.count("gold", 1, "llc_occupancy", 4096)
        rig.resctrl.count("gold", 1, "mbm_total_bytes", "Unavailable")
        plugin = rig.node.plugin
        text = render(series_of_rdt_counters(plugin.class_hosts.rdt))
        text += render(series_of_classes(plugin, plugin.class_hosts))

    lines = [line for line in text.splitlines() if "gold" in line and "1" in line]
    assert {
        'nri_resmgr_rdt_llc_occupancy_bytes{class="gold",group="",cache_id="1"} 4096',
        'nri_l3_llc_occupancy{cache_id="1",rdt_class="gold",rdt_mon_group=""} 4096',
        'nri_resmgr_class_containers{kind="rdt",class="gold"} 1',
    } <= set(lines)
    assert not any("mbm_total" in line and 'cache_id="1"' in line for line in lines)
