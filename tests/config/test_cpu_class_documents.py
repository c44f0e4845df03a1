"""CPU classes that documents define, as values."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import yaml

from nri_resmgr.classes.cpu.cpu_class import CpuClass, FrequencyWord, PctPriority
from nri_resmgr.config.cpu_classes import read_cpu_classes, read_old_cpu_classes
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.table import Table
from nri_resmgr.values import KiloHertz

FIRST = "$.spec.cpuClasses[0]"


def table(text: str) -> Table:
    document: Mapping[str, object] = yaml.safe_load(text)
    return Table("$.spec", document)


def test_every_key_is_read() -> None:
    spec = table("""
cpuClasses:
  - name: fast
    minFreq: base
    maxFreq: 3.2GHz
    uncoreMinFreq: 1000000
    uncoreMaxFreq: turbo
    freqGovernor: performance
    disabledCstates: [C6, C8]
    energyPerformancePreference: balance_performance
    turboPriority: 10
    pctPriority: high
    pctMinFreq: 2500MHz
    pctMaxFreq: turbo
    publishExtendedResource: true
    dra: {publish: true}
  - {name: quiet, pctPriority: low}
""")

    assert read_cpu_classes(spec) == {
        "fast": CpuClass(
            name="fast",
            min=FrequencyWord.BASE,
            max=KiloHertz(3_200_000),
            uncore_min=KiloHertz(1_000_000),
            uncore_max=FrequencyWord.TURBO,
            governor="performance",
            disabled_cstates=("C6", "C8"),
            epp="balance_performance",
            turbo_priority=10,
            pct_priority=PctPriority.HIGH,
            pct_min=KiloHertz(2_500_000),
            pct_max=FrequencyWord.TURBO,
            is_published=True,
        ),
        "quiet": CpuClass(name="quiet", pct_priority=PctPriority.LOW),
    }


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param("name: a", CpuClass(name="a"), id="a name alone"),
        pytest.param(
            "name: a, energyPerformancePreference: 0, sstClosID: 0",
            CpuClass(name="a", epp=0, sst_clos=0),
            id="0 of a preference and of a class of service is a number",
        ),
        pytest.param(
            "name: a, minFreq: 0, uncoreMaxFreq: null",
            CpuClass(name="a"),
            id="0 and null of a frequency are none",
        ),
        pytest.param(
            "name: a, disabledCstates: []",
            CpuClass(name="a", disabled_cstates=()),
            id="an empty list of idle states is one",
        ),
        pytest.param(
            "name: a, maxFreq: 2.4e+6",
            CpuClass(name="a", max=KiloHertz(2_400_000)),
            id="a float of YAML",
        ),
    ],
)
def test_an_omitted_key_differs_from_an_empty_one(row: str, expected: CpuClass) -> None:
    assert read_cpu_classes(table(f"cpuClasses: [{{{row}}}]")) == {"a": expected}


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        pytest.param(
            "name: a, pctMaxFreq: quick, pctPriority: high",
            f"{FIRST}.pctMaxFreq: expected 3.2GHz, 2900MHz, kHz or a word, not 'quick'",
            id="a frequency that is none",
        ),
        pytest.param(
            "name: a, energyPerformancePreference: [0]",
            f"{FIRST}.energyPerformancePreference: expected a number, not a list",
            id="a preference that is neither number nor word",
        ),
        pytest.param(
            "name: a, disabledCstates: C6",
            f"{FIRST}.disabledCstates: expected a list, not 'C6'",
            id="one idle state",
        ),
        pytest.param(
            "name: a, sstClosID: -1",
            f"{FIRST}.sstClosID: expected 0 to 4294967295, not -1",
            id="a class of service below 0",
        ),
    ],
)
def test_a_mistake_is_reported(row: str, complaint: str) -> None:
    with pytest.raises(BadSetting) as found:
        read_cpu_classes(table(f"cpuClasses: [{{{row}}}]"))

    assert str(found.value) == complaint


def test_numbers_of_cri_resource_manager_are_in_kilohertz() -> None:
    spec = table("""
control:
  cpu:
    classes:
      turbo:
        minFreq: 2800000
        maxFreq: 3800000
        energyPerformancePreference: 1
        uncoreMinFreq: 1500000
        uncoreMaxFreq: 2400000
        freqGovernor: performance
        disabledCstates: [C6]
      idle: {minFreq: 0, maxFreq: 1200000}
      none: {}
""")

    assert read_old_cpu_classes(spec) == {
        "turbo": CpuClass(
            name="turbo",
            min=KiloHertz(2_800_000),
            max=KiloHertz(3_800_000),
            epp=1,
            uncore_min=KiloHertz(1_500_000),
            uncore_max=KiloHertz(2_400_000),
            governor="performance",
            disabled_cstates=("C6",),
        ),
        "idle": CpuClass(name="idle", max=KiloHertz(1_200_000)),
        "none": CpuClass(name="none"),
    }


def test_documents_without_classes_have_none() -> None:
    assert read_cpu_classes(table("{}")) == {}
    assert read_old_cpu_classes(table("{}")) == {}
