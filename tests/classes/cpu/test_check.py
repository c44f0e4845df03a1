"""Problems of CPU classes that a machine supports in part, or not at all."""

from __future__ import annotations

import msgspec
import pytest

from nri_resmgr.classes.cpu.check import check
from nri_resmgr.classes.cpu.cpu_class import CpuClass, FrequencyWord, PctPriority
from nri_resmgr.classes.cpu.facts import CpuKnobFacts
from nri_resmgr.topology.speed_select import Feature, Punit
from nri_resmgr.values import KiloHertz
from tests.classes.cpu.machines import BARE, OLD, SERVER, cpus, policy

CPU = "/sys/devices/system/cpu"
P0 = f"{CPU}/cpufreq/policy0"
SST = "/dev/isst_interface"
U0 = f"{CPU}/intel_uncore_frequency/package_00_die_00"

HYBRID = msgspec.structs.replace(
    SERVER, policies=(policy("0"), policy("1", governors=("schedutil",), epps=()))
)
STRICT = msgspec.structs.replace(
    SERVER, policies=(policy("0", governor="performance"),)
)


def punits(power: Feature, turbo: Feature = Feature.OFF) -> CpuKnobFacts:
    one = Punit(0, 0, cpus("0-1,4-5"), power=Feature.ON, turbo=Feature.ON)
    other = Punit(1, 2, cpus("2-3,6-7"), power=power, turbo=turbo)
    return msgspec.structs.replace(SERVER, has_speed_select=True, punits=(one, other))


@pytest.mark.parametrize(
    ("facts", "requests", "reported"),
    [
        pytest.param(
            SERVER,
            {
                "min": FrequencyWord.MIN,
                "max": FrequencyWord.TURBO,
                "governor": "powersave",
                "epp": "power",
                "uncore_min": KiloHertz(1_000_000),
                "disabled_cstates": ("C1", "C6"),
            },
            "",
            id="a class that all can be done of",
        ),
        pytest.param(
            BARE,
            {"max": FrequencyWord.BASE, "governor": "performance", "epp": 0},
            (
                f"! maxFreq: no cpufreq driver on this machine ({CPU}/cpufreq)\n"
                f"! freqGovernor: no cpufreq driver on this machine ({CPU}/cpufreq)\n"
                "! energyPerformancePreference: no cpufreq driver on this machine "
                f"({CPU}/cpufreq)"
            ),
            id="no frequency driver",
        ),
        pytest.param(
            BARE,
            {"disabled_cstates": ("C1", "C6")},
            (
                "disabledCstates: no cpuidle driver, so no CPU has idle states "
                f"({CPU}/cpu*/cpuidle)"
            ),
            id="no idle states to disable",
        ),
        pytest.param(
            SERVER,
            {"disabled_cstates": ("c6",)},
            (
                "! disabledCstates: no state 'c6'; available: POLL C1 C6 "
                f"({CPU}/cpu*/cpuidle/state*/name)"
            ),
            id="an unknown idle state",
        ),
        pytest.param(
            OLD,
            {"uncore_max": KiloHertz(1)},
            (
                "! uncoreMaxFreq: no driver for uncore frequencies; load "
                f"intel_uncore_frequency ({CPU}/intel_uncore_frequency)"
            ),
            id="no uncore driver",
        ),
        pytest.param(
            SERVER,
            {"uncore_max": KiloHertz(9_000_000)},
            (f"uncoreMaxFreq: 9 GHz is above 2.4 GHz, which is set ({U0})"),
            id="a die is not as fast",
        ),
        pytest.param(
            msgspec.structs.replace(SERVER, policies=()),
            {"uncore_max": FrequencyWord.BASE},
            f"uncoreMaxFreq: base is unknown here; give a number ({U0})",
            id="a die without a base frequency",
        ),
        pytest.param(
            OLD,
            {"max": FrequencyWord.BASE},
            (
                "! maxFreq: the driver does not report base; give a number "
                f"({P0}/base_frequency)"
            ),
            id="no base frequency",
        ),
        pytest.param(
            SERVER,
            {"min": KiloHertz(700_000)},
            f"minFreq: 0.7 GHz is below 0.8 GHz, which is set ({P0})",
            id="a frequency below the hardware's",
        ),
        pytest.param(
            SERVER,
            {"min": FrequencyWord.TURBO, "max": FrequencyWord.BASE},
            f"minFreq: 3.8 GHz is above maxFreq, 2 GHz, which is set ({P0})",
            id="a minimum above its maximum",
        ),
        pytest.param(
            msgspec.structs.replace(SERVER, is_turbo_off=True),
            {"max": FrequencyWord.TURBO},
            f"maxFreq: turbo is switched off for the whole machine ({CPU}/cpufreq)",
            id="turbo is off",
        ),
        pytest.param(
            OLD,
            {"governor": "perfomance"},
            (
                "! freqGovernor: no governor 'perfomance'; available: ondemand "
                f"performance powersave schedutil ({P0}/scaling_available_governors)"
            ),
            id="an unknown governor",
        ),
        pytest.param(
            HYBRID,
            {"governor": "powersave"},
            (
                "freqGovernor: no governor 'powersave'; available: schedutil, on 1 of "
                f"2 policies ({CPU}/cpufreq/policy1/scaling_available_governors)"
            ),
            id="a governor that some CPUs lack",
        ),
        pytest.param(
            OLD,
            {"epp": 1},
            (
                "energyPerformancePreference: driver acpi-cpufreq takes no preference "
                f"({P0}/energy_performance_preference)"
            ),
            id="a driver without preferences, as old documents may meet it",
        ),
        pytest.param(
            SERVER,
            {"epp": "fast"},
            (
                "! energyPerformancePreference: no preference 'fast'; available: "
                "default performance balance_performance balance_power power "
                f"({P0}/energy_performance_available_preferences)"
            ),
            id="an unknown preference",
        ),
        pytest.param(
            SERVER,
            {"epp": 256},
            (
                "energyPerformancePreference: 256 is above 255, so it is not written "
                f"({CPU}/cpufreq)"
            ),
            id="a preference beyond a byte",
        ),
        pytest.param(
            SERVER,
            {"governor": "performance", "epp": "power"},
            (
                "energyPerformancePreference: the kernel refuses it beside the "
                f"governor performance ({P0}/energy_performance_preference)"
            ),
            id="a preference that the class' governor forbids",
        ),
        pytest.param(
            STRICT,
            {"epp": 128},
            (
                "energyPerformancePreference: the kernel refuses it beside the "
                "governor performance; set another freqGovernor "
                f"({P0}/energy_performance_preference)"
            ),
            id="a preference that the host's governor forbids",
        ),
        pytest.param(STRICT, {"epp": 0}, "", id="0 goes with every governor"),
        pytest.param(
            SERVER,
            {"pct_priority": PctPriority.HIGH},
            (
                "! pctPriority: no driver of Intel Speed Select; load the isst_* "
                f"modules of this CPU ({SST})"
            ),
            id="no Speed Select",
        ),
        pytest.param(
            msgspec.structs.replace(SERVER, has_speed_select=True),
            {"sst_clos": 1},
            (
                "! sstClosID: the driver of Intel Speed Select reports nothing, or "
                f"denies access ({SST})"
            ),
            id="a device that does not answer",
        ),
        pytest.param(
            punits(Feature.ON, Feature.ON),
            {"sst_clos": 4},
            f"! sstClosID: 4 is no class of service, expected 0 to 3 ({SST})",
            id="no such class of service",
        ),
        pytest.param(
            punits(Feature.OFF),
            {"sst_clos": 3},
            (
                "sstClosID: core power (SST-CP) is off, so classes of service do "
                f"nothing on punit 1/2 ({SST})\n"
                "sstClosID: turbo frequency (SST-TF) is off, so no core has more turbo "
                f"on punit 1/2 ({SST})"
            ),
            id="Speed Select that others have not switched on",
        ),
        pytest.param(
            punits(Feature.OFF),
            {"pct_priority": PctPriority.LOW},
            "",
            id="Speed Select that we switch on",
        ),
        pytest.param(
            punits(Feature.UNSUPPORTED, Feature.UNSUPPORTED),
            {"pct_priority": PctPriority.LOW},
            (
                "pctPriority: core power (SST-CP) is not supported on punit 1/2 "
                f"({SST})\n"
                "pctPriority: turbo frequency (SST-TF) is not supported on punit 1/2 "
                f"({SST})"
            ),
            id="Speed Select in a part of the machine",
        ),
    ],
)
def test_unsupported_settings_are_reported(
    facts: CpuKnobFacts, requests: dict[str, object], reported: str
) -> None:
    one = CpuClass(name="a", **requests)  # type: ignore[arg-type] # of many kinds
    found = check({"a": one}, facts)

    start = "CPU class a, "
    texts = [("! " if p.is_error else "") + str(p).removeprefix(start) for p in found]
    assert texts == reported.splitlines()


def test_a_class_that_cannot_lose_turbo_is_reported() -> None:
    turbo = FrequencyWord.TURBO
    classes = {
        "fast": CpuClass(name="fast", max=turbo, turbo_priority=1),
        "slow": CpuClass(name="slow", max=turbo),
    }

    (found,) = check(classes, OLD)
    assert str(found) == (
        "CPU class slow, turboPriority: the driver reports no base frequency: turbo "
        f"stays beside a priority of 1 ({P0}/base_frequency)"
    )
    assert check(classes, SERVER) == ()
