from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.classes.cpu.cpu_class import CpuClass, TurboDomain
from nri_resmgr.classes.isolation.exclusivity import Exclusivity
from nri_resmgr.config import AllBut, BadSetting, Listed
from nri_resmgr.config.balloon_types import BalloonTypeConfig, ExpressionConfig
from nri_resmgr.config.balloons import BalloonsConfig, LoadClassConfig
from nri_resmgr.policies import parse_config
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, KiloHertz
from nri_resmgr.values.scheduling import SchedulingClass, SchedulingPolicy

ROOT: Final = Path(__file__).parents[2]
HEAD: Final = "apiVersion: config.nri/v1alpha1\nkind: BalloonsPolicy\n"

OF_THE_POLICY: Final = """
spec:
  availableResources: {cpu: "exclude-cpuset:7"}
  reservedResources: {cpu: "cpuset:0-1"}
  reservedExact: true
  reservedPerSocket: true
  reservedPoolNamespaces: [monitoring]
  pinCPU: false
  pinMemory: false
  memoryBy: request
  allocatorTopologyBalancing: true
  preferSpreadOnPhysicalCores: true
  preserve:
    matchExpressions: [{key: name, operator: In, values: [vm]}]
  loadClasses: [{name: avx, level: core, overloadsLevelInBalloon: true}]
  schedulingClasses: [{name: low, policy: idle}]
  onFailure: shared
  publishResources: false
  isolationAnnotations: true
  exclusivity: isolated-partition
"""

OF_A_TYPE: Final = """
spec:
  loadClasses: [{name: avx, level: l2cache}]
  schedulingClasses: [{name: low, policy: idle}]
  balloonTypes:
  - name: web
    namespaces: ["web-*"]
    matchExpressions: [{key: labels/app, operator: Exists}]
    groupBy: ${pod/labels/app}
    minCPUs: 1
    maxCPUs: 4
    minBalloons: 2
    maxBalloons: 3
    preferSpreadingPods: true
    preferPerNamespaceBalloon: true
    preferNewBalloons: true
    shareIdleCPUsInSame: l2cache
    preferCloseToDevices: [/sys/class/net/eth0, "podresourceapi:*/gpu"]
    preferFarFromDevices: [/sys/devices/system/node/node1]
    preferIsolCpus: true
    preferCoreType: efficient
    hideHyperthreads: true
    allocatorTopologyBalancing: false
    preferSpreadOnPhysicalCores: true
    allocatorPriority: low
    loads: [avx]
    memoryTypes: [DRAM, hbm]
    pinMemory: false
    schedulingClass: low
  - name: both
    components: [{balloonType: web}, {balloonType: given}]
    componentCreation: balance-balloons
  - {name: given, maxCPUs: -1}
  - {name: fixed, cpus: [0-1, "5"]}
  - {name: one, cpus: 7}
"""

TYPES: Final = (
    BalloonTypeConfig(
        path="$.spec.balloonTypes[0]",
        name="web",
        namespaces=("web-*",),
        expressions=(
            ExpressionConfig(
                "labels/app", "Exists", (), "$.spec.balloonTypes[0].matchExpressions[0]"
            ),
        ),
        group_by="${pod/labels/app}",
        min_cpus=1,
        max_cpus=4,
        min_balloons=2,
        max_balloons=3,
        spread_pods=True,
        per_namespace=True,
        prefer_new=True,
        share_idle="l2cache",
        close_to=("/sys/class/net/eth0", "podresourceapi:*/gpu"),
        far_from=("/sys/devices/system/node/node1",),
        prefer_isolated=True,
        core_type="efficient",
        hide_hyperthreads=True,
        topology_balancing=False,
        spread_on_cores=True,
        priority="low",
        loads=("avx",),
        memory_types=("dram", "hbm"),
        pin_memory=False,
        scheduling_class="low",
    ),
    BalloonTypeConfig(
        path="$.spec.balloonTypes[1]",
        name="both",
        components=("web", "given"),
        balance_components=True,
    ),
    BalloonTypeConfig(path="$.spec.balloonTypes[2]", name="given", max_cpus=-1),
    BalloonTypeConfig(
        path="$.spec.balloonTypes[3]",
        name="fixed",
        cpus=(CpuSet.of(0, 1), CpuSet.of(5)),
    ),
    BalloonTypeConfig(path="$.spec.balloonTypes[4]", name="one", cpus=(CpuSet.of(7),)),
)


def test_every_option_of_the_policy_is_read() -> None:
    preserve = ExpressionConfig(
        "name", "In", ("vm",), "$.spec.preserve.matchExpressions[0]"
    )

    assert parse_config(HEAD + OF_THE_POLICY) == BalloonsConfig(
        available=AllBut(CpuSet.of(7)),
        reserved=Listed(CpuSet.of(0, 1)),
        reserved_exact=True,
        reserved_per_socket=True,
        reserved_pool_namespaces=("monitoring",),
        pin_cpu=False,
        pin_memory=False,
        memory_by="request",
        topology_balancing=True,
        spread_on_cores=True,
        preserve=(preserve,),
        load_classes={"avx": LoadClassConfig("avx", "core", overloads=True)},
        scheduling_classes={
            "low": SchedulingClass(name="low", policy=SchedulingPolicy.IDLE)
        },
        on_failure="shared",
        publish_resources=False,
        isolation=True,
        exclusivity=Exclusivity.ISOLATED_PARTITION,
    )


def test_every_option_of_a_type_is_read() -> None:
    found = parse_config(HEAD + OF_A_TYPE)

    assert isinstance(found, BalloonsConfig)
    assert found.types == TYPES


def test_an_empty_document_has_the_defaults() -> None:
    assert parse_config(HEAD) == BalloonsConfig()


def test_the_sample_is_read() -> None:
    text = (ROOT / "conf.d" / "balloons.conf").read_text(encoding="utf-8")

    found = parse_config(text)

    assert isinstance(found, BalloonsConfig)
    assert [one.name for one in found.types] == ["latency", "batch"]


def test_options_without_effect_are_listed_with_their_paths() -> None:
    text = (
        HEAD
        + """
spec:
  agent: {podResourceAPI: true}
  showContainersInNrt: true
  cpuClasses: [{name: fast, maxFreq: 3.2GHz, dra: {publish: true}}]
  balloonTypes:
  - {name: quiet}
  - {name: web, showContainersInNrt: true}
"""
    )

    found = parse_config(text)

    assert found.node_topology is None
    assert found.ineffective == (
        "$.spec.cpuClasses[0].dra",
        "$.spec.showContainersInNrt",
        "$.spec.balloonTypes[1].showContainersInNrt",
    )


@pytest.mark.parametrize(
    ("spec", "idle", "names"),
    [
        pytest.param(
            """
  cpuClasses: [{name: fast, maxFreq: 3.2GHz}, {name: slow, minFreq: min}]
  idleCPUClass: slow""",
            "slow",
            ["fast", "slow"],
            id="a class for CPUs of no balloon",
        ),
        pytest.param(
            """
  cpuClasses: [{name: fast, maxFreq: 3.2GHz}, {name: default}]""",
            "default",
            ["fast", "default"],
            id="the class named default is that class",
        ),
        pytest.param(
            """
  control: {cpu: {classes: {fast: {minFreq: 800000}, slow: {}}}}
  cpuClasses: [{name: fast, maxFreq: 3.2GHz}]""",
            "",
            ["fast", "slow"],
            id="classes of old documents, unless there are new ones of the name",
        ),
    ],
)
def test_cpu_classes(spec: str, idle: str, names: list[str]) -> None:
    text = f"{HEAD}spec:{spec}\n  turboDomain: system\n"
    text += "  balloonTypes: [{name: web, cpuClass: fast}]\n"

    found = parse_config(text).cpu_classes

    fast = CpuClass(name="fast", max=KiloHertz(3_200_000))
    assert found is not None
    assert (found.domain, found.idle) == (TurboDomain.SYSTEM, idle)
    assert (list(found.classes), found.classes["fast"]) == (names, fast)


def test_isolated_and_idle_cpus_together_are_one_warning() -> None:
    text = (
        HEAD
        + """
spec:
  balloonTypes:
  - {name: quick, preferIsolCpus: true}
  - {name: busy, shareIdleCPUsInSame: system}
  - {name: mixed, preferIsolCpus: true, shareIdleCPUsInSame: numa}
"""
    )

    with capture_logs() as logs:
        build_policy(parse_config(text), parse_spec("1s2c1t"))

    assert logs == [
        {
            "event": "configuration.warning",
            "log_level": "warning",
            "path": "$.spec.balloonTypes[2].shareIdleCPUsInSame",
            "why": "with preferIsolCpus containers run on isolated and other CPUs, "
            "between which the kernel moves no process",
        }
    ]


def test_undefined_classes_are_a_warning() -> None:
    text = f"{HEAD}spec: {{balloonTypes: [{{name: web, cpuClass: fast}}]}}\n"

    found = parse_config(text)

    why = "no CPU class is defined, so no CPU settings are changed"
    assert found.cpu_classes is None
    assert found.warnings == (("$.spec.balloonTypes[0].cpuClass", why),)


def test_an_undefined_class_beside_defined_ones_is_a_mistake() -> None:
    text = f"{HEAD}spec: {{cpuClasses: [{{name: fast}}], idleCPUClass: fats}}\n"

    with pytest.raises(BadSetting, match=r"idleCPUClass: .* did you mean fast\?"):
        parse_config(text)
