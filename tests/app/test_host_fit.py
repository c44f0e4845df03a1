"""Documents that ask a host for what it cannot do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.app.configuration.build import build_policy, host_warnings
from nri_resmgr.config import BadSetting
from nri_resmgr.host.recorded import RecordedTree
from nri_resmgr.policies import parse_config
from tests.daemon.host_nodes import KERNEL
from tests.host.cpu_trees import CPU, MACHINE, acpi_cpufreq, bare, intel_pstate

ROOT: Final = Path(__file__).parents[2]
HEAD: Final = "apiVersion: config.nri/v1alpha1\nkind: "
RESERVED: Final = "reservedResources: {cpu: 'cpuset:0'}"
POLICY: Final = f"{CPU}/cpufreq/policy0"


def tree(files: Mapping[str, str]) -> RecordedTree:
    return RecordedTree({**bare(MACHINE).files, **KERNEL, **files})


def classes(row: str) -> str:
    spec = f"cpuClasses: [{{name: a, {row}}}]\n  sharedPoolCPUClass: a"
    return f"{HEAD}TopologyAwarePolicy\nspec:\n  {RESERVED}\n  {spec}\n"


def balloons(spec: str) -> str:
    return f"{HEAD}BalloonsPolicy\nspec:\n  {RESERVED}\n{spec}\n"


@pytest.mark.parametrize(
    ("text", "files", "path", "why"),
    [
        pytest.param(
            classes("maxFreq: 2GHz"),
            {},
            "$.spec.cpuClasses[0].maxFreq",
            f"no cpufreq driver on this machine ({CPU}/cpufreq)",
            id="no driver for frequencies",
        ),
        pytest.param(
            classes("freqGovernor: ondemand"),
            intel_pstate(),
            "$.spec.cpuClasses[0].freqGovernor",
            "no governor 'ondemand'; available: performance powersave "
            f"({POLICY}/scaling_available_governors)",
            id="a governor that no CPU has",
        ),
        pytest.param(
            classes("disabledCstates: [C7]"),
            intel_pstate(),
            "$.spec.cpuClasses[0].disabledCstates",
            "no state 'C7'; available: POLL C1 C1E C6 "
            f"({CPU}/cpu*/cpuidle/state*/name)",
            id="an idle state that no CPU has",
        ),
        pytest.param(
            classes("uncoreMaxFreq: 2GHz"),
            acpi_cpufreq(),
            "$.spec.cpuClasses[0].uncoreMaxFreq",
            "no driver for uncore frequencies; load intel_uncore_frequency "
            f"({CPU}/intel_uncore_frequency)",
            id="no driver for uncore frequencies",
        ),
        pytest.param(
            classes("pctPriority: high"),
            intel_pstate(),
            "$.spec.cpuClasses[0].pctPriority",
            "no driver of Intel Speed Select; load the isst_* modules of this CPU "
            "(/dev/isst_interface)",
            id="no driver of Speed Select",
        ),
        pytest.param(
            balloons("  control: {cpu: {classes: {a: {freqGovernor: swift}}}}"),
            intel_pstate(),
            "$.spec.control.cpu.classes.a.freqGovernor",
            "no governor 'swift'; available: performance powersave "
            f"({POLICY}/scaling_available_governors)",
            id="a class of CRI Resource Manager is named by its own path",
        ),
        pytest.param(
            balloons(
                "  controllableInterrupts: ['*nvme*']\n"
                "  balloonTypes: [{name: net, irqClaim: ['31']}]"
            ),
            {},
            "$.spec.balloonTypes[0].irqClaim",
            "'31' names interrupt 31 (PCI-MSI 1-edge eth0-rx-0), which "
            "controllableInterrupts ['*nvme*'] leaves out; to help, name fewer "
            "interrupts, or allow this one",
            id="a type claims an interrupt that may not be moved",
        ),
    ],
)
def test_settings_without_any_effect_are_a_mistake(
    text: str, files: Mapping[str, str], path: str, why: str
) -> None:
    with pytest.raises(BadSetting) as error:
        build_policy(parse_config(text), MACHINE, tree(files))

    assert (error.value.path, error.value.why) == (path, why)


@pytest.mark.parametrize(
    ("text", "files", "warnings"),
    [
        pytest.param(
            classes("maxFreq: 9GHz"),
            intel_pstate(),
            (
                (
                    "$.spec.cpuClasses[0].maxFreq",
                    (f"9 GHz is above 3.8 GHz, which is set ({POLICY})"),
                ),
            ),
            id="a frequency beyond the limits is cut",
        ),
        pytest.param(
            classes("disabledCstates: [C6]"),
            {},
            (
                (
                    "$.spec.cpuClasses[0].disabledCstates",
                    (
                        "no cpuidle driver, so no CPU has idle states "
                        f"({CPU}/cpu*/cpuidle)"
                    ),
                ),
            ),
            id="a virtual machine without idle states",
        ),
        pytest.param(
            classes("maxFreq: 2GHz"), intel_pstate(), (), id="all can be done"
        ),
        pytest.param(
            balloons("  balloonTypes: [{name: net, irqClaim: ['31']}]"),
            {},
            (),
            id="all interrupts may be moved by default",
        ),
    ],
)
def test_settings_with_a_partial_effect_are_a_warning(
    text: str, files: Mapping[str, str], warnings: tuple[tuple[str, str], ...]
) -> None:
    assert host_warnings(parse_config(text), MACHINE, tree(files)) == warnings


def test_the_sample_of_conf_d_fits_a_machine_with_a_driver() -> None:
    text = (ROOT / "conf.d" / "cpu-classes.conf").read_text(encoding="utf-8")
    config = parse_config(text)
    build_policy(config, MACHINE, tree(intel_pstate()))

    assert config.cpu_classes is not None
    assert list(config.cpu_classes.classes) == ["fast", "shared", "quiet"]
    assert host_warnings(config, MACHINE, tree(intel_pstate())) == ()


def test_without_a_host_nothing_is_known_of_it() -> None:
    assert host_warnings(parse_config(classes("maxFreq: 2GHz")), MACHINE, None) == ()
