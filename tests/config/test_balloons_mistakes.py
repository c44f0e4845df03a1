from __future__ import annotations

from typing import Final

import pytest

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.config import BadSetting
from nri_resmgr.policies import parse_config
from nri_resmgr.topology.synthetic import parse_spec

HEAD: Final = "apiVersion: config.nri/v1alpha1\nkind: BalloonsPolicy\n"
TYPES: Final = "$.spec.balloonTypes"


def types(*rows: str) -> str:
    return f"{{balloonTypes: [{', '.join(rows)}]}}"


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        pytest.param(
            "{balloonType: []}",
            "$.spec.balloonType: unknown key, did you mean balloonTypes?",
            id="a key in the singular",
        ),
        pytest.param(
            types("{name: a, minCpus: 1}"),
            f"{TYPES}[0].minCpus: unknown key, did you mean minCPUs?",
            id="a key in other letters",
        ),
        pytest.param(
            types("{minCPUs: 1}"),
            f"{TYPES}[0].name: missing, expected text",
            id="no name",
        ),
        pytest.param(
            types("{name: a}", "{name: a}"),
            f"{TYPES}[1].name: duplicate name 'a'",
            id="a name twice",
        ),
        pytest.param(
            types("{name: a, minCPUs: 3, maxCPUs: 2}"),
            f"{TYPES}[0].minCPUs: 3 is more than maxCPUs (2)",
            id="a minimum above the maximum",
        ),
        pytest.param(
            types("{name: a, minBalloons: 3, maxBalloons: 2}"),
            f"{TYPES}[0].minBalloons: 3 is more than maxBalloons (2)",
            id="a minimum number above the maximum",
        ),
        pytest.param(
            types("{name: reserved, maxBalloons: 2}"),
            f"{TYPES}[0].maxBalloons: expected at most 1 for type reserved, not 2",
            id="two reserved balloons",
        ),
        pytest.param(
            types("{name: a, loads: [avx]}"),
            f"{TYPES}[0].loads[0]: unknown value, none is defined",
            id="a load that there is not",
        ),
        pytest.param(
            types("{name: a, schedulingClass: rt}"),
            f"{TYPES}[0].schedulingClass: unknown value, none is defined",
            id="a scheduling class that there is not",
        ),
        pytest.param(
            "{loadClasses: [{name: a, level: l3cache}]}",
            "$.spec.loadClasses[0].level: unknown value, did you mean l2cache?",
            id="a level that loads do not have",
        ),
        pytest.param(
            "{loadClasses: [{name: a}]}",
            "$.spec.loadClasses[0].level: missing, expected core or l2cache",
            id="a load without a level",
        ),
        pytest.param(
            types("{name: a, memoryTypes: [DRAM, tape]}"),
            f"{TYPES}[0].memoryTypes[1]: unknown value, expected dram or hbm or pmem "
            "or cxl",
            id="a kind of memory that there is not",
        ),
        pytest.param(
            types("{name: a, componentCreation: all}"),
            f"{TYPES}[0].componentCreation: needs components",
            id="a way to create no components",
        ),
        pytest.param(
            types("{name: a, components: [{balloonType: b}]}"),
            f"{TYPES}[0].components[0].balloonType: unknown value, expected a or "
            "reserved or default",
            id="a component that there is not",
        ),
        pytest.param(
            types(
                "{name: a, components: [{balloonType: b}], cpuClass: fast}", "{name: b}"
            ),
            f"{TYPES}[0].cpuClass: not allowed with components",
            id="a composite type with a CPU class",
        ),
        pytest.param(
            types("{name: a, components: [{balloonType: b}], loads: []}", "{name: b}"),
            f"{TYPES}[0].loads: not allowed with components",
            id="a composite type that allocates CPUs",
        ),
        pytest.param(
            types(
                "{name: a, components: [{balloonType: b}]}",
                "{name: b, components: [{balloonType: a}]}",
            ),
            f"{TYPES}[0].components[0].balloonType: 'b' itself contains 'a'",
            id="a circle of components",
        ),
        pytest.param(
            types("{name: a, components: [{balloonType: b}]}", '{name: b, cpus: "3"}'),
            f"{TYPES}[0].components[0].balloonType: 'b' has explicit cpus, so it "
            "cannot be a component",
            id="a component with CPUs by number",
        ),
        pytest.param(
            types("{name: a, cpus: 4-5, maxCPUs: 2}"),
            f"{TYPES}[0].maxCPUs: not allowed with cpus, which determine it",
            id="CPUs by number, and a limit",
        ),
        pytest.param(
            types("{name: a, cpus: [4-5, 6-]}"),
            f"{TYPES}[0].cpus[1]: not a CPU or node list: '6-' (at '6-')",
            id="no list of CPUs",
        ),
        pytest.param(
            types("{name: a, irqMode: loud}"),
            f"{TYPES}[0].irqMode: unknown value, expected sink or isolate",
            id="what is not in force yet is read as closely",
        ),
    ],
)
def test_a_mistake_is_reported_with_its_path(spec: str, complaint: str) -> None:
    with pytest.raises(BadSetting) as found:
        parse_config(f"{HEAD}spec: {spec}")

    assert str(found.value) == complaint


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        pytest.param(
            types("{name: a, matchExpressions: [{key: name, operator: Is}]}"),
            f"{TYPES}[0].matchExpressions[0].operator: unknown value, expected Equals",
            id="an operator that there is not",
        ),
        pytest.param(
            types("{name: a, matchExpressions: [{key: nam, operator: Exists}]}"),
            f"{TYPES}[0].matchExpressions[0]: unknown key 'nam'",
            id="a key that containers do not have",
        ),
        pytest.param(
            types('{name: a, groupBy: "${pod/app}"}'),
            f"{TYPES}[0].groupBy: unknown key 'pod/app'",
            id="a group of nothing",
        ),
        pytest.param(
            types("{name: a, preferCloseToDevices: [eth0]}"),
            f"{TYPES}[0].preferCloseToDevices[0]: expected /sys/...",
            id="a device without a path",
        ),
        pytest.param(
            types("{name: a, minBalloons: 3, minCPUs: 3}"),
            f"{TYPES}: balloon a[2] needs 3 more CPUs",
            id="more balloons than there are CPUs for",
        ),
        pytest.param(
            types("{name: a, cpus: 7-8}"),
            f"{TYPES}[0].cpus: CPU 8 is not available (0-7)",
            id="a CPU by number that there is not",
        ),
        pytest.param(
            types('{name: a, cpus: ["3-4", "4"]}'),
            f"{TYPES}[0].cpus: CPU 4 is listed for two balloons",
            id="a CPU by number twice",
        ),
        pytest.param(
            "{reservedResources: {cpu: 3}, "
            "balloonTypes: [{name: reserved, minCPUs: 2}]}",
            f"{TYPES}[0].minCPUs: 2, but reservedResources.cpu is 3 CPUs",
            id="another minimum than what is reserved",
        ),
        pytest.param(
            "{reservedResources: {cpu: 3}, "
            "balloonTypes: [{name: reserved, maxCPUs: 2}]}",
            f"{TYPES}[0].maxCPUs: 2, but reservedResources.cpu is 3 CPUs",
            id="a maximum below what is reserved",
        ),
        pytest.param(
            "{reservedResources: {cpu: 'cpuset:9'}}",
            "$.spec.reservedResources.cpu: this machine has no CPU 9",
            id="a reserved CPU that there is not",
        ),
        pytest.param(
            "{reservedResources: {cpu: 'cpuset:0'}, balloonTypes:"
            " [{name: default, maxCPUs: -1}, {name: reserved, maxCPUs: -1}]}",
            "$.spec.balloonTypes: maxCPUs of every type is below 0, so none has a CPU",
            id="no CPUs for any container",
        ),
        pytest.param(
            "{reservedResources: {cpu: 'cpuset:0'}, reservedExact: true,"
            " balloonTypes: [{name: reserved, shareIdleCPUsInSame: numa}]}",
            "$.spec.balloonTypes[0].shareIdleCPUsInSame: "
            "contradicts reservedExact, which excludes all other CPUs",
            id="idle CPUs for containers that may have the reserved ones only",
        ),
    ],
)
def test_a_setting_that_does_not_fit_the_machine_is_reported_with_its_path(
    spec: str, complaint: str
) -> None:
    config = parse_config(f"{HEAD}spec: {spec}")

    with pytest.raises(BadSetting) as found:
        build_policy(config, parse_spec("1s1n8c1t"))

    assert str(found.value).startswith(complaint)
