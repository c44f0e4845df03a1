from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
import yaml
from structlog.testing import capture_logs

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.config import BadSetting, TopologyAwareConfig
from nri_resmgr.host.tree import HostTree
from nri_resmgr.policies import parse_config
from nri_resmgr.policies.topology_aware import topology_aware_settings
from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.preferences import TreeLevel
from nri_resmgr.policy.topology_aware.policy import TopologyAwarePolicy
from nri_resmgr.policy.topology_aware.settings import (
    TopologyAwareSettings,
)
from nri_resmgr.policy.whole_pods import PodPlacement
from nri_resmgr.stub.runtime_info import Configuration, RuntimeInfo
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, QosClass
from nri_resmgr.values.scheduling import SchedulingClass, SchedulingPolicy


def config_of(**spec: object) -> TopologyAwareConfig:
    kind = {"apiVersion": "config.nri/v1alpha1", "kind": "TopologyAwarePolicy"}
    config = parse_config(yaml.safe_dump({**kind, "spec": spec}))
    assert isinstance(config, TopologyAwareConfig)
    return config


@pytest.mark.parametrize(
    ("machine", "available", "reserved", "chosen"),
    [
        pytest.param("1s4c2t", None, None, ("0-7", "0"), id="the lowest CPU"),
        pytest.param("1c", None, None, ("0", "0"), id="the only CPU"),
        pytest.param("1s1c2t", None, None, ("0-1", "0"), id="not the only core whole"),
        pytest.param(
            "1s4c2t isolated=0,4,5",
            None,
            None,
            ("0-7", "1"),
            id="none that is isolated",
        ),
        pytest.param(
            "1s2c2t isolated=0-3", None, None, ("0-3", "0"), id="unless all are"
        ),
        pytest.param(
            "1s4c2t", "exclude-cpuset:0,5", None, ("1-4,6-7", "1"), id="what is there"
        ),
        pytest.param("1s4c2t", "4", None, ("0-1,4-5", "0"), id="of so many"),
        pytest.param("1s4c2t", None, "750m", ("0-7", "0"), id="a fraction is a CPU"),
        pytest.param("1s4c2t", None, "2", ("0-7", "0,4"), id="two CPUs are a core"),
        pytest.param(
            "1s4c2t isolated=0,4", None, "2", ("0-7", "1,5"), id="none of it isolated"
        ),
        pytest.param("1s4c2t", "cpuset:1-7", "cpuset:7", ("1-7", "7"), id="a list"),
        pytest.param(
            "1s4c2t", "cpuset:1-7", "exclude-cpuset:1-5", ("1-7", "6-7"), id="the rest"
        ),
        pytest.param(
            "1s4c2t", None, "cgroup:system", ("0-7", "1-2"), id="a cgroup's CPUs"
        ),
        pytest.param(
            "1s4c2t", "cgroup:/system", None, ("1-2", "1"), id="nothing but a cgroup's"
        ),
    ],
)
def test_cpus_are_chosen_for_the_machine(
    tmp_path: Path,
    machine: str,
    available: str | None,
    reserved: str | None,
    chosen: tuple[str, str],
) -> None:
    cgroup = tmp_path / "sys/fs/cgroup/system"
    cgroup.mkdir(parents=True)
    (cgroup / "cpuset.cpus.effective").write_text("1-2\n")
    config = config_of(
        availableResources={"cpu": available}, reservedResources={"cpu": reserved}
    )

    settings = topology_aware_settings(config, parse_spec(machine), HostTree(tmp_path))

    assert (str(settings.available), str(settings.reserved)) == chosen


@pytest.mark.parametrize(
    ("machine", "available", "reserved", "chosen"),
    [
        pytest.param("1s4c2t", None, None, "0,4", id="the lowest core"),
        pytest.param("1s4c1t", None, None, "0", id="a core of one thread"),
        pytest.param("1s1c2t", None, None, "0", id="not the only core"),
        pytest.param("1s2c2t", None, "3", "0-2", id="not all cores"),
        pytest.param("1s4c2t isolated=4", None, None, "0", id="no isolated thread"),
        pytest.param("1s2c2t isolated=0-3", None, None, "0,2", id="unless all are"),
        pytest.param("1s4c2t", "cpuset:0-4", "cpuset:1", "1", id="no other thread"),
        pytest.param("1s4c2t", None, "cpuset:0,5", "0-1,4-5", id="of a list"),
        pytest.param("1s4c2t", None, "3", "0-1,4-5", id="of an amount"),
    ],
)
def test_whole_cores_are_reserved_on_request(
    machine: str, available: str | None, reserved: str | None, chosen: str
) -> None:
    config = config_of(
        availableResources={"cpu": available},
        reservedResources={"cpu": reserved},
        reserveWholeCores=True,
    )

    settings = topology_aware_settings(config, parse_spec(machine))

    assert str(settings.reserved) == chosen


EVERYTHING: Final[dict[str, object]] = {
    "reservedResources": {"cpu": 1},
    "reservedPoolNamespaces": ["infra-*"],
    "pinCPU": False,
    "pinMemory": False,
    "preferIsolatedCPUs": False,
    "preferSharedCPUs": True,
    "colocatePods": True,
    "colocateNamespaces": True,
    "defaultCPUPriority": "low",
    "unlimitedBurstable": "l3cache",
    "schedulingClasses": [{"name": "low", "policy": "idle"}],
    "namespaceSchedulingClasses": {"jobs": "low"},
    "podQoSSchedulingClasses": {"bestEffort": "low"},
    "onFailure": "shared",
    "placePods": "soft",
    "publishResources": False,
}


def test_every_option_reaches_the_policy() -> None:
    low = SchedulingClass(name="low", policy=SchedulingPolicy.IDLE)

    settings = topology_aware_settings(config_of(**EVERYTHING), parse_spec("1s2c1t"))

    assert settings == TopologyAwareSettings(
        available=CpuSet.of(0, 1),
        reserved=CpuSet.of(0),
        reserved_namespaces=("kube-system", "infra-*"),
        pin_cpus=False,
        pin_memory=False,
        prefer_isolated=False,
        prefer_shared=True,
        colocate_pods=True,
        colocate_namespaces=True,
        cpu_priority=CpuPriority.LOW,
        unlimited_burstable=TreeLevel.L3,
        scheduling_classes={"low": low},
        namespace_scheduling={"jobs": "low"},
        qos_scheduling={QosClass.BEST_EFFORT: "low"},
        on_failure=OnFailure.SHARED,
        place_pods=PodPlacement.SOFT,
        publish_resources=False,
    )


def test_the_defaults_are_those_of_the_policy() -> None:
    machine = parse_spec("1s2c1t")

    assert topology_aware_settings(TopologyAwareConfig(), machine) == (
        TopologyAwareSettings(available=CpuSet.of(0, 1), reserved=CpuSet.of(0))
    )


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        pytest.param(
            {"reservedResources": {"cpu": "cpuset:9"}},
            "$.spec.reservedResources.cpu: this machine has no CPU 9",
            id="a CPU that is not there",
        ),
        pytest.param(
            {"reservedResources": {"cpu": "cgroup:nowhere"}},
            "$.spec.reservedResources.cpu: no CPUs of cgroup nowhere: "
            "/sys/fs/cgroup/nowhere/cpuset.cpus.effective: no such file",
            id="a cgroup that is not there",
        ),
    ],
)
def test_settings_that_do_not_fit_the_machine_are_reported(
    tmp_path: Path, spec: dict[str, object], complaint: str
) -> None:
    with pytest.raises(BadSetting) as found:
        build_policy(config_of(**spec), parse_spec("1s2c1t"), HostTree(tmp_path))

    assert str(found.value) == complaint


def test_a_document_of_the_runtime_may_name_a_cgroup(tmp_path: Path) -> None:
    cgroup = tmp_path / "sys/fs/cgroup/system"
    cgroup.mkdir(parents=True)
    (cgroup / "cpuset.cpus.effective").write_text("1\n")
    plugin = ResourcePolicy(parse_spec("1s2c1t"), tree=HostTree(tmp_path))
    text = (
        "apiVersion: config.nri/v1alpha1\nkind: TopologyAwarePolicy\n"
        "spec: {reservedResources: {cpu: 'cgroup:system'}}"
    )

    plugin.configure(Configuration(text, RuntimeInfo()))

    assert isinstance(plugin.policy, TopologyAwarePolicy)
    assert plugin.policy.settings.reserved == CpuSet.of(1)


def test_without_a_host_there_are_no_cgroups() -> None:
    config = config_of(availableResources={"cpu": "cgroup:system"})

    with pytest.raises(BadSetting) as found:
        build_policy(config, parse_spec("1s2c1t"))

    assert str(found.value) == (
        "$.spec.availableResources.cpu: cgroups can only be read on the host itself"
    )


def test_ineffective_options_are_logged_once() -> None:
    config = config_of(log={"klog": {"v": 2}}, dra={"sharedCounters": True})

    with capture_logs() as logs:
        policy = build_policy(config, parse_spec("1s2c1t"))

    assert policy.kind == "TopologyAwarePolicy"
    assert logs == [
        {
            "event": "configuration.ineffective",
            "log_level": "warning",
            "paths": ("$.spec.dra.sharedCounters", "$.spec.log.klog.v"),
        }
    ]


def test_effective_options_are_not_logged() -> None:
    with capture_logs() as logs:
        build_policy(config_of(pinMemory=False), parse_spec("1s2c1t"))

    assert logs == []
