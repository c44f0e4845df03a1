"""The page about memory classes is true."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import yaml

from nri_resmgr.classes.memory import (
    CLASS_KEY,
    EPC_KEY,
    MISC_KEY,
    POLICY_KEY,
    MemoryQosClass,
    MemoryQosConfig,
    NodeWord,
    NumaPolicy,
    PolicyFlag,
    PolicyMode,
    misc_limits,
)
from nri_resmgr.config.memory_classes import (
    NumaPolicyConfig,
    parse_numa_policy,
    read_memory_qos,
    read_numa_policies,
)
from nri_resmgr.config.table import Table

PAGE = Path(__file__).parents[3] / "docs" / "memory-classes.md"


def test_the_examples_run() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False)

    assert result.attempted > 0
    assert result.failed == 0


def test_the_files_of_the_page_are_read() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    qos, policies = (block for block in blocks if block.startswith("classes:"))

    assert read_memory_qos(
        Table("$", {"x": yaml.safe_load(qos)}), "x"
    ) == MemoryQosConfig(
        {"bronze": MemoryQosClass(500_000)}, ("memory.high", "memory.swap.max")
    )
    near = NumaPolicy(PolicyMode.BIND, "cpu-nodes", (PolicyFlag.STATIC_NODES,))
    assert read_numa_policies(
        Table("$", {"x": yaml.safe_load(policies)}), "x"
    ) == NumaPolicyConfig({"near": near})


def test_the_page_names_all_keywords_and_keys() -> None:
    prose = re.sub(r"```.*?```", "", PAGE.read_text(), flags=re.DOTALL)
    documented = set(re.findall(r"`([^`]+)`", prose))

    keys = {CLASS_KEY, POLICY_KEY, EPC_KEY, MISC_KEY}
    assert {*NodeWord, *PolicyMode, *PolicyFlag, *keys} <= documented


def test_the_values_of_the_page_mean_something() -> None:
    assert misc_limits({MISC_KEY: "sev_es 4, tdx 2"}, "web") == {
        "sev_es": "4",
        "tdx": "2",
    }
    assert "`sev_es 4, tdx 2`" in PAGE.read_text()
    spoken = "{mode: MPOL_INTERLEAVE, nodes: all}"
    assert parse_numa_policy(spoken) == NumaPolicy(PolicyMode.INTERLEAVE, "all")
    assert f"`{spoken}`" in PAGE.read_text()
