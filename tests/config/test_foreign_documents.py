"""What has no effect with us is checked all the same: a typo stays a typo."""

from __future__ import annotations

import pytest

from nri_resmgr.config import BadSetting
from nri_resmgr.policies import parse_config

HEAD = "apiVersion: config.nri/v1alpha1\nkind: TopologyAwarePolicy\n"
CPU = "$.spec.cpuClasses"


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        pytest.param(
            "{agent: {podResourcesAPI: true}}",
            "$.spec.agent.podResourcesAPI: unknown key, did you mean podResourceAPI?",
            id="an unknown key of the agent",
        ),
        pytest.param(
            "{dra: {enabled: 'yes'}}",
            "$.spec.dra.enabled: expected true or false, not 'yes'",
            id="a word for a flag of resource allocation",
        ),
        pytest.param(
            "{log: {debug: all}}",
            "$.spec.log.debug: expected a list, not 'all'",
            id="one logger and no list",
        ),
        pytest.param(
            "{log: {klog: {v: [1]}}}",
            "$.spec.log.klog.v: expected text, a number, true or false",
            id="a list for a flag of klog",
        ),
        pytest.param(
            "{instrumentation: {reportPeriod: 60}}",
            "$.spec.instrumentation.reportPeriod: expected a duration such as 30s, "
            "not '60'",
            id="a time without unit",
        ),
        pytest.param(
            "{instrumentation: {logExportPeriod: 5 s}}",
            "$.spec.instrumentation.logExportPeriod: expected a duration such as 30s, "
            "not '5 s'",
            id="a time with a blank",
        ),
        pytest.param(
            "{instrumentation: {metricsExporter: otlp}}",
            "$.spec.instrumentation.metricsExporter: unknown value, did you mean "
            "otlp-http?",
            id="no exporter",
        ),
        pytest.param(
            "{instrumentation: {samplingRatePerMillion: 1000001}}",
            "$.spec.instrumentation.samplingRatePerMillion: expected 0 to 1000000, "
            "not 1000001",
            id="more samples than spans",
        ),
        pytest.param(
            "{instrumentation: {metrics: {enable: []}}}",
            "$.spec.instrumentation.metrics.enable: unknown key, did you mean enabled?",
            id="an unknown key of metrics",
        ),
        pytest.param(
            "{control: {cpu: {classes: {a: {minFreq: fast}}}}}",
            "$.spec.control.cpu.classes.a.minFreq: expected a number, not 'fast'",
            id="a word for a frequency of old",
        ),
        pytest.param(
            "{control: {rdt: {enabled: true}}}",
            "$.spec.control.rdt.enabled: unknown key, did you mean enable?",
            id="an unknown key of resctrl",
        ),
        pytest.param(
            "{control: {rdt: {partitions: {p: {l4Allocation: {}}}}}}",
            "$.spec.control.rdt.partitions.p.l4Allocation: unknown key, did you mean "
            "l3Allocation?",
            id="a cache that is not there",
        ),
        pytest.param(
            "{control: {rdt: {partitions: {p: {classes: {c: 1}}}}}}",
            "$.spec.control.rdt.partitions.p.classes.c: expected a mapping, not 1",
            id="a class of cache that is no mapping",
        ),
        pytest.param(
            "{controllableInterrupts: '*'}",
            "$.spec.controllableInterrupts: expected a list, not '*'",
            id="one pattern and no list",
        ),
    ],
)
def test_a_mistake_in_a_common_section_is_reported(spec: str, complaint: str) -> None:
    with pytest.raises(BadSetting) as found:
        parse_config(f"{HEAD}spec: {spec}")

    assert str(found.value) == complaint


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        pytest.param("[{}]", f"{CPU}[0].name: missing, expected text", id="no name"),
        pytest.param(
            "[{name: a}, {name: a}]", f"{CPU}[1].name: duplicate name 'a'", id="twice"
        ),
        pytest.param(
            "[{name: a, maxFreq: 3.2 Ghz/s}]",
            f"{CPU}[0].maxFreq: expected 3.2GHz, 2900MHz, kHz or a word, "
            "not '3.2 Ghz/s'",
            id="no frequency",
        ),
        pytest.param(
            "[{name: a, turboPriority: -1}]",
            f"{CPU}[0].turboPriority: expected 0 to 4294967295, not -1",
            id="less than no priority",
        ),
        pytest.param(
            "[{name: a, pctPriority: medium}]",
            f"{CPU}[0].pctPriority: unknown value, expected high or low",
            id="no turbo priority",
        ),
        pytest.param(
            "[{name: a, pctPriority: high, sstClosID: 1}]",
            f"{CPU}[0].sstClosID: not allowed with pctPriority",
            id="both ways of turbo priority in one class",
        ),
        pytest.param(
            "[{name: a, pctPriority: high}, {name: b, sstClosID: 1}]",
            f"{CPU}[1].sstClosID: not allowed with pctPriority of other classes",
            id="both ways of turbo priority in two classes",
        ),
        pytest.param(
            "[{name: a, pctPriority: low}, {name: b, pctPriority: low}]",
            f"{CPU}[0].pctPriority: only one class may have priority low",
            id="two classes of low turbo priority",
        ),
        pytest.param(
            "[{name: a, pctMinFreq: base}]",
            f"{CPU}[0].pctMinFreq: needs pctPriority high or low",
            id="a frequency of a turbo class that is none",
        ),
        pytest.param(
            "[{name: a, publishExtendedResource: true}]",
            f"{CPU}[0].publishExtendedResource: needs pctPriority or sstClosID",
            id="a resource of a turbo class that is none",
        ),
        pytest.param(
            "[{name: a}, {name: b}]",
            "$.spec.sharedPoolCPUClass: missing, expected a or b",
            id="classes, and none for the shared pools",
        ),
        pytest.param(
            "[{name: slow}], sharedPoolCPUClass: sow",
            "$.spec.sharedPoolCPUClass: unknown value, did you mean slow?",
            id="shared pools in a class that is not there",
        ),
        pytest.param(
            "[], defaultExclusiveCPUClass: slow",
            "$.spec.defaultExclusiveCPUClass: unknown value, none is defined",
            id="own CPUs in a class that is not there",
        ),
    ],
)
def test_a_mistake_in_a_cpu_class_is_reported(rows: str, complaint: str) -> None:
    with pytest.raises(BadSetting) as found:
        parse_config(f"{HEAD}spec: {{cpuClasses: {rows}}}")

    assert str(found.value) == complaint
