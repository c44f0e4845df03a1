"""A policy out of its configuration, for one machine."""

from __future__ import annotations

from nri_resmgr.config import FittingCpus, StaticPolicyConfig, fit_cpus
from nri_resmgr.policy.cpus import CpuRequest, allocate_cpus
from nri_resmgr.policy.static import OnFailure, StaticPolicy, StaticSettings
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet


def build_policy(config: StaticPolicyConfig, machine: Machine) -> StaticPolicy:
    """Build the policy that *config* asks for.

    Raises:
        BadSetting: The configuration does not fit the machine.
    """
    available, reserved = _choose(fit_cpus(config, machine), machine)
    settings = StaticSettings(
        available=available,
        reserved=reserved,
        reserved_namespaces=config.reserved_pool_namespaces,
        pin_cpus=config.pin_cpu,
        pin_memory=config.pin_memory,
        prefer_isolated=config.prefer_isolated_cpus,
        on_failure=OnFailure(config.on_failure),
    )
    return StaticPolicy(machine, settings)


def _choose(fitting: FittingCpus, machine: Machine) -> tuple[CpuSet, CpuSet]:
    available, reserved = fitting.available, fitting.reserved
    if isinstance(available, int):
        available = _take(available, machine.online - machine.isolated, machine)
    if isinstance(reserved, int):
        ordinary = available - machine.isolated
        reserved = _take(reserved, ordinary or available, machine)
    return available, reserved


def _take(count: int, free: CpuSet, machine: Machine) -> CpuSet:
    return allocate_cpus(CpuRequest(count=count, free=free), machine).cpus
