"""The page about RDT classes is true."""

from __future__ import annotations

import doctest
import re
import textwrap
from pathlib import Path

import yaml

from nri_resmgr.classes.rdt import (
    Bandwidth,
    BandwidthMode,
    Capabilities,
    Plan,
    RdtCache,
    plan_of,
)
from nri_resmgr.classes.rdt.checks import classes_of
from nri_resmgr.config.rdt import MonitoredPods, read_rdt_document
from nri_resmgr.policies import parse_config

PAGE = Path(__file__).parents[3] / "docs" / "rdt.md"
FENCED = r"(?ms)^```yaml\n(.*?)```"


def test_the_examples_run() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False)

    assert result.attempted > 0
    assert result.failed == 0


def test_the_example_of_monitoring_is_accepted() -> None:
    monitoring, _ = re.findall(FENCED, PAGE.read_text())
    spec = textwrap.indent(monitoring, "  ")
    use = parse_config(
        f"apiVersion: config.nri/v1alpha1\nkind: NonePolicy\nspec:\n{spec}"
    ).rdt

    assert use is not None
    assert use.pods == MonitoredPods(("shop", "team-*"), {"app": "db"})


def test_the_file_of_the_page_gives_the_documented_schemata() -> None:
    # Examples of documents stand in a list, so their fences are indented.
    _, text = re.findall(FENCED, PAGE.read_text())
    cache = RdtCache(0xFFFFF, 1, False, 8, (0, 1, 2, 3))
    machine = Capabilities(
        {"L3CODE": cache, "L3DATA": cache},
        Bandwidth(BandwidthMode.PERCENT, 10, 10, 100, 8, (0, 1, 2, 3)),
    )

    # exclusive: id 0: 12 bits; id 1: as written; 2, 3: code 14, data 10 bits
    # silver, from 49: * 12 // 100 = 5; * 8: 3; * 14: 6; * 10: 4
    # root, from 19 on: * 8 // 100 = 1; * 12: 2; code * 6: 1; data * 10: 1
    config = read_rdt_document(yaml.safe_load(text))
    assert plan_of(config, machine) == Plan(
        {
            "gold": "L3CODE:0=fff;1=ff000;2=3fff;3=3fff\n"
            "L3DATA:0=fff;1=ff000;2=3ff;3=3ff\n"
            "MB:0=100;1=100;2=100;3=100\n",
            "silver": "L3CODE:0=3f;1=f000;2=7f;3=7f\n"
            "L3DATA:0=3f;1=f000;2=1f;3=1f\n"
            "MB:0=80;1=80;2=50;3=50\n",
        },
        "L3CODE:0=fe000;1=ffc;2=f8000;3=f8000\n"
        "L3DATA:0=fe000;1=ffc;2=ff800;3=ff800\n"
        "MB:0=100;1=100;2=100;3=100\n",
    )
    assert [one.name for _, one in classes_of(config) if one.deny_pod_annotation] == [
        "silver"
    ]
