"""The page about CPU classes is true."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import yaml

from nri_resmgr.classes.cpu.cpu_class import CpuClass, FrequencyWord
from nri_resmgr.config.cpu_classes import read_cpu_classes
from nri_resmgr.config.table import Table
from nri_resmgr.values import KiloHertz

PAGE = Path(__file__).parents[3] / "docs" / "cpu-classes.md"


def test_the_example_runs() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False)

    assert result.attempted > 0
    assert result.failed == 0


def test_the_document_of_the_page_is_read() -> None:
    text = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]

    assert read_cpu_classes(Table("$.spec", yaml.safe_load(text)["spec"])) == {
        "fast": CpuClass(
            name="fast",
            min=FrequencyWord.BASE,
            max=FrequencyWord.TURBO,
            turbo_priority=10,
            governor="performance",
            disabled_cstates=("C6",),
        ),
        "quiet": CpuClass(
            name="quiet",
            max=KiloHertz(1_200_000),
            governor="powersave",
            epp="power",
            uncore_max=KiloHertz(1_600_000),
        ),
    }
