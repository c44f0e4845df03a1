"""Documents as users of nri-plugins write them load unchanged, and mean the same."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.classes.cpu.cpu_class import CpuClass, FrequencyWord, PctPriority
from nri_resmgr.classes.rdt import (
    ALL,
    Allocations,
    BandwidthAllocation,
    CacheAllocation,
    Percent,
    RdtClass,
    RdtConfig,
    RdtPartition,
)
from nri_resmgr.config import AllBut, Amount, Listed, TopologyAwareConfig
from nri_resmgr.config.balloon_types import BalloonTypeConfig, ExpressionConfig
from nri_resmgr.config.balloons import BalloonsConfig
from nri_resmgr.config.blockio import BlockIoControl
from nri_resmgr.config.cpu_classes import CpuClassUse
from nri_resmgr.config.observability import InstrumentationUse, LogUse
from nri_resmgr.config.policy_config import NodeTopologyUse
from nri_resmgr.config.rdt import RdtUse
from nri_resmgr.policies import parse_config
from nri_resmgr.values import CpuSet, KiloHertz, QosClass
from nri_resmgr.values.scheduling import (
    IoClass,
    SchedulingClass,
    SchedulingFlag,
    SchedulingPolicy,
)

FOLDER: Final = Path(__file__).parent / "nri_plugins"


def l3(percent: int) -> dict[str, dict[int, CacheAllocation]]:
    return {"L3": {ALL: CacheAllocation(Percent(percent))}}


CLASSES: Final = (
    SchedulingClass(
        name="control-loop",
        policy=SchedulingPolicy.FIFO,
        priority=42,
        flags=(SchedulingFlag.RESET_ON_FORK,),
        io_class=IoClass.RT,
    ),
    SchedulingClass(
        name="frames",
        policy=SchedulingPolicy.DEADLINE,
        runtime=2_000_000,
        deadline=8_000_000,
        period=16_000_000,
    ),
    SchedulingClass(
        name="leftovers", policy=SchedulingPolicy.IDLE, io_class=IoClass.IDLE
    ),
    SchedulingClass(
        name="modest",
        policy=SchedulingPolicy.BATCH,
        nice=10,
        io_class=IoClass.BEST_EFFORT,
        io_priority=6,
    ),
    SchedulingClass(name="plain"),
)

MEANINGS: Final = {
    "minimal": TopologyAwareConfig(reserved=Amount(1)),
    "helm-defaults": TopologyAwareConfig(
        reserved=Amount(1),
        node_topology=NodeTopologyUse(),
        pod_resources=False,
        log=LogUse(source=True, headers=False),
        instrumentation=InstrumentationUse(
            endpoint="[::]:8891", enabled=("policy", "buildinfo"), period=60.0
        ),
    ),
    "cpusets": TopologyAwareConfig(
        available=AllBut(CpuSet.parse("16-31")), reserved=Listed(CpuSet.of(0, 32))
    ),
    "colocation": TopologyAwareConfig(
        available=Listed(CpuSet.parse("0-47")),
        reserved=Amount(2),
        reserved_pool_namespaces=("kube-system", "monitoring", "logging-*"),
        pin_memory=False,
        prefer_isolated_cpus=False,
        prefer_shared_cpus=True,
        colocate_pods=True,
        colocate_namespaces=True,
    ),
    "hybrid": TopologyAwareConfig(
        reserved=Listed(CpuSet.of(8)),
        default_cpu_priority="low",
        unlimited_burstable="l3cache",
    ),
    "scheduling": TopologyAwareConfig(
        reserved=Amount(1),
        scheduling_classes={one.name: one for one in CLASSES},
        namespace_scheduling={"robots": "control-loop", "video": "frames"},
        qos_scheduling={
            QosClass.BEST_EFFORT: "leftovers",
            QosClass.BURSTABLE: "modest",
            QosClass.GUARANTEED: "plain",
        },
    ),
    "cpu-classes": TopologyAwareConfig(
        reserved=Listed(CpuSet.of(0, 1)),
        cpu_classes=CpuClassUse(
            classes={
                "fast": CpuClass(
                    name="fast",
                    min=FrequencyWord.BASE,
                    max=FrequencyWord.TURBO,
                    turbo_priority=10,
                    disabled_cstates=("C6", "C8"),
                    governor="performance",
                    epp=0,
                    pct_priority=PctPriority.HIGH,
                    pct_max=KiloHertz(3_800_000),
                    is_published=True,
                ),
                "quiet": CpuClass(
                    name="quiet",
                    min=FrequencyWord.MIN,
                    max=KiloHertz(2_400_000),
                    uncore_min=KiloHertz(800_000),
                    uncore_max=KiloHertz(1_600_000),
                    pct_priority=PctPriority.LOW,
                ),
                "housekeeping": CpuClass(name="housekeeping", max=KiloHertz(2_000_000)),
            },
            paths={
                "fast": "$.spec.cpuClasses[0]",
                "quiet": "$.spec.cpuClasses[1]",
                "housekeeping": "$.spec.cpuClasses[2]",
            },
            shared="quiet",
            reserved="housekeeping",
            exclusive="fast",
        ),
        interrupts=("*nvme*", "mlx5*"),
    ),
    "classes-of-cache-and-disk": TopologyAwareConfig(
        reserved=Amount(1),
        ineffective=("$.spec.control.cpu.classes",),
        rdt=RdtUse(
            config=RdtConfig(
                (
                    RdtPartition(
                        "everything",
                        Allocations(l3(100), {ALL: BandwidthAllocation(percent=100)}),
                        (
                            RdtClass("Guaranteed", Allocations(l3(100))),
                            RdtClass("Burstable", Allocations(l3(66))),
                            RdtClass("BestEffort", Allocations(l3(33))),
                        ),
                    ),
                )
            ),
            by_qos=True,
        ),
        blockio=BlockIoControl(enabled=True, by_qos=True),
    ),
    "telemetry": TopologyAwareConfig(
        reserved=AllBut(CpuSet.parse("2-63")),
        ineffective=(
            "$.spec.log.klog.v",
            "$.spec.log.klog.logtostderr",
            "$.spec.log.klog.stderrthreshold",
        ),
        log=LogUse(
            debug=(
                ("app.plugin", True),
                ("app.verification", True),
                ("daemon", True),
                ("app.observing.request_log", True),
                ("app.configuration", True),
                ("app.observing.decision_log", True),
                ("app.running", True),
            ),
            source=True,
        ),
        instrumentation=InstrumentationUse(
            endpoint="[::]:8891",
            sends_metrics=True,
            enabled=("*",),
            polled=("cgroups",),
            period=90.0,
            sends_traces=True,
            collector="http://collector.observability:4317",
            traces_by_grpc=True,
            sampling="1",
            log_period=5.0,
            log_by_grpc=True,
        ),
    ),
    "balloons-helm-defaults": BalloonsConfig(
        reserved=Amount(1),
        topology_balancing=True,
        types=(
            BalloonTypeConfig(
                path="$.spec.balloonTypes[0]",
                name="dedicated-cpus",
                expressions=(
                    ExpressionConfig(
                        key="qosclass",
                        operator="In",
                        values=("Guaranteed",),
                        path="$.spec.balloonTypes[0].matchExpressions[0]",
                    ),
                ),
                prefer_new=True,
                spread_pods=True,
            ),
            BalloonTypeConfig(
                path="$.spec.balloonTypes[1]",
                name="shared-local-cpus",
                expressions=(
                    ExpressionConfig(
                        key="qosclass",
                        operator="In",
                        values=("BestEffort", "Burstable"),
                        path="$.spec.balloonTypes[1].matchExpressions[0]",
                    ),
                ),
                share_idle="package",
                prefer_new=True,
                max_balloons=2,
            ),
        ),
    ),
    "balloons-sample": BalloonsConfig(
        warnings=(
            (
                "$.spec.idleCPUClass",
                "no CPU class is defined, so no CPU settings are changed",
            ),
        ),
        log=LogUse(
            debug=(("app.configuration", True), ("app.observing.decision_log", True))
        ),
        reserved=Amount(1),
        reserved_pool_namespaces=("kube-system",),
        topology_balancing=True,
        types=(
            BalloonTypeConfig(
                path="$.spec.balloonTypes[0]",
                name="default",
                namespaces=("default",),
                min_cpus=1,
                share_idle="system",
                priority="normal",
            ),
        ),
    ),
    "topology-aware-sample": TopologyAwareConfig(
        log=LogUse(source=True, headers=False),
        instrumentation=InstrumentationUse(period=60.0, sampling="1"),
        reserved=Amount(1),
        reserved_pool_namespaces=("kube-system", "infrastructure", "observability"),
        colocate_pods=True,
    ),
    "as-stored-in-the-cluster": TopologyAwareConfig(
        reserved=Amount(1), pin_cpu=False, unlimited_burstable="numa"
    ),
}


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.stem)
def test_a_document_of_nri_plugins_means_the_same(path: Path) -> None:
    config = parse_config(path.read_text(encoding="utf-8"))

    assert config == MEANINGS[path.stem]


def test_every_document_has_a_meaning_here() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == MEANINGS.keys()
